"""Rules in the trainer's process: forks, spawned processes, threads and loops; what is started, and when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from rewardstack import Request, score
from rewardstack.errors import SettingsError
from tests.client.conftest import ROOT
from tests.isolation.processes import alive, below
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

COMMON = r"""
    import asyncio, logging, os, sys, threading
    from rewardstack import Request, acompute_score, compute_score, score

    HARD = r"\boxed{\frac{\sin(2x)}{2\cos(x)} + y}", r"\sin(x) + y"  # decided in an isolated process

    def hard(at=0):
        return compute_score("math", HARD[0], HARD[1] + f" + {at} - {at}", on_error="raise")
"""

NOTHING_AT_IMPORT = r"""
    import rewardstack
    rewardstack.register_route("mine", "math")
    assert not [name for name in sys.modules if name.startswith("rewardstack_rules")]
    assert children() == []
    assert compute_score("gsm8k", "#### 42", "42") == 1.0
    assert children() == []  # decided at once
    assert hard() == 1.0
    print("done")
"""

FORKS = """
    assert hard() == 1.0
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        ended = 0 if grandchild == 0 else os.waitpid(grandchild, 0)[1]
        os._exit(0 if ended == 0 and hard(1 if grandchild else 2) == 1.0 else 1)
    assert hard(3) == 1.0
    assert os.waitpid(child, 0)[1] == 0
    print("done")
"""

FORK_BEFORE = """
    first = os.fork()
    if first == 0:
        os._exit(0 if hard() == 1.0 else 1)
    assert hard(1) == 1.0 and os.waitpid(first, 0)[1] == 0
    print("done")
"""

POOLS = """
    import multiprocessing

    def one(at):
        return hard(at)

    if __name__ == "__main__":
        for method, size in (("fork", 2), ("spawn", 1)):
            with multiprocessing.get_context(method).Pool(size) as pool:
                assert pool.map(one, range(3)) == [1.0] * 3
        print("done")
"""

THREADS_AND_LOOPS = """
    found = []
    threads = [threading.Thread(target=lambda at=at: found.append(hard(at))) for at in range(16)]
    [one.start() for one in threads], [one.join() for one in threads]
    assert found == [1.0] * 16

    async def inside():
        blocking = hard(20)
        twins = await asyncio.gather(*(acompute_score("math", HARD[0], HARD[1] + f" + {at} - {at}") for at in (21, 22)))
        return [blocking, *twins]

    assert asyncio.run(inside()) == [1.0] * 3 and asyncio.run(inside()) == [1.0] * 3
    print("done")
"""

MARKED = """
from rewardstack_rules import reward_function
import os, sys

@reward_function
def marked(response, reference=None):
    return {"score": float("marker" in sys.modules), "pid": float(os.getpid())}
"""

OWN_WITH_NEIGHBOR = """
from rewardstack_rules import reward_function
from beside import VALUE

@reward_function
def own(response, reference=None):
    return VALUE
"""

LIVES = """
    assert hard() == 1.0
    print("ready", flush=True)
    sys.stdin.read()
"""


def command(text: str, tmp_path: Path) -> list[str]:
    """A script in a file, so that spawned processes find its functions."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(COMMON) + textwrap.dedent(CHILDREN) + textwrap.dedent(text))
    return [sys.executable, str(path)]


CHILDREN = """
    def children():
        return [name for name in os.listdir("/proc") if name.isdigit() and parent(name) == str(os.getpid())]

    def parent(pid):
        try:
            return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]
        except OSError:
            return ""
"""


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a trainer that has the client, the verifier and the rules, and names no server."""
    folders = ("client", "verifier", "services/rules", ".")
    paths = os.pathsep.join(str(ROOT / folder) for folder in folders)
    return {**os.environ, "PYTHONPATH": paths, "VERIFY_TIMEOUT": "60"}  # a machine may have other work


@pytest.mark.parametrize(
    "text",
    [NOTHING_AT_IMPORT, FORKS, FORK_BEFORE, POOLS, THREADS_AND_LOOPS],
    ids=["nothing at import", "forks", "a fork before the first call", "pools", "threads and loops"],
)
def test_callers(text: str, tmp_path: Path, environment: dict[str, str]) -> None:
    """Every caller gets the right score, and each process says once that rules run in it."""
    done = subprocess.run(
        command(text, tmp_path), env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    lines = done.stderr.splitlines()
    assert lines and all("REWARD_SERVER_URL is not set: rules run on this machine" in line for line in lines)
    if "os.fork" not in text and "Pool" not in text:
        assert len(lines) == 1


def test_isolated_processes_are_fresh(tmp_path: Path, environment: dict[str, str]) -> None:
    """An own function runs in a process that was not forked from the trainer: it has none of the trainer's modules."""
    (tmp_path / "own.py").write_text(MARKED)
    text = """
        sys.modules["marker"] = sys
        [one] = score([Request("rule_remote_marked", "a")])
        assert (one.value, one.status) == (0.0, "ok") and one.parts["pid"] != os.getpid(), one
        print("done")
    """
    environment["REWARD_FUNCTIONS"] = str(tmp_path / "own.py")
    done = subprocess.run(
        command(text, tmp_path), env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.strip() == "done", done.stderr


def test_files_of_the_working_folder(tmp_path: Path, environment: dict[str, str]) -> None:
    """Files named like modules of Python break no isolated process; own functions import the files beside them."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("re", "json", "random", "asyncio", "runpy", "socket"):
        (work / f"{name}.py").write_text("raise ImportError('a file of the user')")
    (work / "beside.py").write_text("VALUE = 0.25")
    (work / "own.py").write_text(OWN_WITH_NEIGHBOR)
    text = """
        assert hard() == 1.0
        [one] = score([Request("rule_remote_own", "a")])
        assert (one.value, one.status) == (0.25, "ok"), one
        sys.path.insert(0, "")  # as in `python -m` and in an interactive session
        from rewardstack_rules.isolation import launch
        launch.start_supervisor(launch.IsolationConfig("rewardstack_rules.scoring.task:execute", fast=1))
        print("done")
    """
    environment["REWARD_FUNCTIONS"] = str(work / "own.py")
    done = subprocess.run(
        command(text, tmp_path), cwd=work, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_end_of_the_trainer(end: str, tmp_path: Path, environment: dict[str, str]) -> None:
    """All processes that rules run in end with the trainer, however it ends, and leave no directory."""
    # The path of pytest's own directory may be too long for a socket.
    with tempfile.TemporaryDirectory() as folder, running(tmp_path, environment | {"TMPDIR": folder}) as trainer:
        assert trainer.stdout and trainer.stdout.readline() == "ready\n"
        started = processes_of(Path(folder))
        assert len(started) > 2
        if end == "is killed":
            trainer.kill()
        trainer.communicate()
        eventually(lambda: not any(map(alive, started)) and not [*Path(folder).iterdir()])


def running(tmp_path: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A trainer that scores, says so, and ends with its input."""
    return subprocess.Popen(
        command(LIVES, tmp_path),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def processes_of(folder: Path) -> list[int]:
    """The supervisors whose directory is in a folder, and all processes below them."""
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_supervisor(pid, folder)]
    for pid in found:
        found += [child for child in below(pid) if child not in found]
    return found


def _is_supervisor(pid: int, folder: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return False
    return "rewardstack_rules.isolation.supervisor" in words and any(word.startswith(str(folder)) for word in words)


def test_neither_server_nor_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server and without the package of the rules, the error names both ways to have rules."""
    monkeypatch.setitem(sys.modules, "rewardstack_rules", None)
    monkeypatch.setattr("rewardstack.client._clients", {})  # an earlier test's has found the rules
    with pytest.raises(SettingsError, match="^REWARD_SERVER_URL is not set; install rewardstack-rules .*make up"):
        score([Request("gsm8k", "#### 42", "42")])
