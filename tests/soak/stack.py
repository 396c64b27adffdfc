"""The stack that is soaked: local processes of its own, to be looked at one by one and disturbed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from benchmarks.judge_load import slow_judge
from services.stack import processes
from services.stack.rundir import RunDir
from services.up.native.supervisor import Supervisor
from tests.native.tree import Tree
from tests.support.hostile.attack import RIGHT, Attack, message, send
from tests.support.hostile.protocols import laborious
from tests.support.waiting import eventually

SETTINGS = {
    # One of the two is never disturbed, so that its memory tells of the whole time.
    "REWARD_WORKERS": "2",
    "WORKERS": "2",
    "VERIFY_TIMEOUT": "5",
    "REWARD_JOB_CHUNK_SIZE": "50",
    # What is kept on purpose is full, or has expired, long before the first measurement.
    "REWARD_CACHE_ITEMS": "1000",
    "REWARD_CACHE_TTL": "60",
    "REWARD_JOB_TTL": "60",
}
"""Of the stack that is soaked."""
JUDGE_SECONDS = 0.05
VERIFIERS = "rewardstack_rules.isolation.supervisor"
ZYGOTE = "rewardstack_rules.isolation.zygote"
SUPERVISORD = "supervisord"


class SoakStack:
    """The stack.

    Args:
        folder: for a copy of the tree, in which nothing else runs.
        judge: address of a judge.
    """

    def __init__(self, folder: Path, judge: str) -> None:
        self._tree = Tree(folder / "tree")
        self._tree.environment |= {**SETTINGS, "LLM_JUDGE_SERVER_URL": judge}
        self.url = self._tree.url
        self.supervisor = Supervisor(RunDir(str(self._tree.path / ".run")))

    def start(self) -> None:
        """Starts it; returns when it is healthy.

        Raises:
            RuntimeError: it does not become healthy; with the output of `make up`.
        """
        done = self._tree.run("up")
        if done.returncode != 0:
            raise RuntimeError(done.stdout)

    def stop(self) -> None:
        """Stops it."""
        self._tree.run("down")

    def pid(self, service: str) -> int:
        """The id of a service's main process, 0 where there is none."""
        return next((state.pid for state in self.supervisor.states() if state.name == service), 0)

    def server(self) -> psutil.Process:
        """The youngest of the processes that answer requests."""
        return max(psutil.Process(self.pid("rules")).children(), key=lambda one: one.create_time())

    def zygote(self) -> psutil.Process:
        """The process that the reward server's verifiers are forked from.

        Raises:
            psutil.NoSuchProcess: there is none at the moment.
        """
        for process, service in self.members():
            parent = process.parent()
            if (
                service == "verifiers of rules"
                and parent is not None
                and _is(ZYGOTE, process)
                and _is(VERIFIERS, parent)
            ):
                return process
        raise psutil.NoSuchProcess(0, msg="the verifiers have no zygote")

    def verifiers(self) -> psutil.Process:
        """The supervisor of the reward server's verifiers."""
        return psutil.Process(self.zygote().ppid())

    def verifier(self) -> psutil.Process:
        """The last of them."""
        return self.zygote().children()[-1]

    def members(self) -> Iterator[tuple[psutil.Process, str]]:
        """Every process of the stack, and the service that it belongs to."""
        services = {state.pid: state.name for state in self.supervisor.states()}
        for process in processes.all_processes():
            directory = process.directory
            with suppress(psutil.Error):
                if directory is not None and directory.is_relative_to(self._tree.path):
                    own = psutil.Process(process.pid)
                    yield own, _service(own, services)

    def recover(self) -> None:
        """Returns when every service runs, and a sample that needs a verifier is scored."""
        eventually(self._is_healthy)

    def _is_healthy(self) -> bool:
        states = self.supervisor.states()
        if not states or any(state.state != "RUNNING" for state in states):
            return False
        body = json.dumps({"items": [laborious()]}).encode()
        with suppress(OSError):
            reply = send(self.url, Attack("ordinary", (message("POST", "/v1/score", body),)))
            return reply is not None and reply.status == 200 and reply.json()["scores"][0]["value"] == RIGHT
        return False


def _service(process: psutil.Process, services: dict[int, str]) -> str:
    """The service of a process, by who started it; verifiers' supervisors leave home as they start."""
    for one in (process, *process.parents()):
        if one.pid in services:
            return services[one.pid]
        if _is(VERIFIERS, one):
            owners = {name for pid, name in services.items() if _log_of(pid) == _log_of(one.pid)}
            return "verifiers of rules" if "rules" in owners else "verifiers of workers"
    return SUPERVISORD


def _log_of(pid: int) -> str:
    """Where a process writes its log: verifiers have that of the service that started them."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/2")
    return ""


def _is(module: str, process: psutil.Process) -> bool:
    found = processes.find(process.pid)
    return found is not None and module in found.command


@contextmanager
def running(folder: Path) -> Iterator[SoakStack]:
    """A healthy stack with a judge that gives every sample the same verdict; removed afterwards.

    Args:
        folder: for files.
    """
    with slow_judge(JUDGE_SECONDS) as (judge, _):
        stack = SoakStack(folder, judge)
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()
