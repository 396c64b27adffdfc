"""Run real reward servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from rewardstack.settings import DEFAULTS as CLIENT_DEFAULTS
from rewardstack_rules.settings import DEFAULTS
from tests.support.forked import Forked
from tests.support.servers import Redis, free_port

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
START_SECONDS = 200
VERIFY_TIMEOUT = 5
"""Seconds that an isolated sample of `server` may take: for samples that never end, and those beside them."""
OWN_FUNCTIONS = (
    ROOT / "examples" / "reward_functions.py",
    *(HERE / "functions" / name for name in ("hostile.py", "signatures.py")),
)
DATASET: list[dict[str, Any]] = [
    {"question": "What is 6 * 7?", "answer": "42"},
    {"question": "Name  a\nprime.", "answer": ["2", "3"]},
    {"question": "What is shown?", "answer": "a cat"},
    {"question": "What is shown?", "answer": "a dog"},
    {"question": "How many?", "answer": 12},
]


def clean_environment(**variables: Any) -> dict[str, str]:
    """Return the environment without the developer's settings, and with `variables`."""
    names = {*DEFAULTS, *CLIENT_DEFAULTS, "PROMETHEUS_MULTIPROC_DIR"}
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return kept | {name: str(value) for name, value in variables.items()}


def command_of(pid: int) -> bytes:
    """Return the command line of a process; nothing if it has just gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class RewardServer:
    """A reward server in its own processes.

    Args:
        folder: folder for its log.
        arguments: arguments of the command, except host and port.
        command: module of `rewardstack_rules` to run, or the path of a script.
        cwd: working folder; None for that of the test.
        fresh: whether to run a module in a new interpreter, as users do, instead of a fork.
        variables: environment variables.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        command: str | Path = "run_reward_server",
        cwd: Path | None = None,
        fresh: bool = False,
        **variables: Any,
    ) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self._workers = int(arguments[arguments.index("--workers") + 1]) if "--workers" in arguments else 0
        self.log = folder / f"server-{port}.log"
        options = ["--host", "127.0.0.1", *arguments, "--port", str(port)]
        environment = clean_environment(**variables)
        self.process: subprocess.Popen[bytes] | Forked
        with self.log.open("wb") as log:
            if fresh or isinstance(command, Path):
                program = [str(command)] if isinstance(command, Path) else ["-m", f"rewardstack_rules.{command}"]
                started = [sys.executable, *program, *options]
                self.process = subprocess.Popen(started, stdout=log, stderr=log, cwd=cwd, env=environment)
            else:
                module = f"rewardstack_rules.{command}"
                self.process = Forked(module, options, stdout=log, stderr=log, cwd=cwd, env=environment)

    def wait_until_ready(self) -> None:
        """Return when its log says that it runs, which the first worker does, and all its workers are there."""
        end = time.monotonic() + START_SECONDS
        while "Running on" not in self.log.read_text() or len(self.workers()) < self._workers:
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def get(self, path: str, timeout: float = 60, **options: Any) -> requests.Response:
        """Send a GET request."""
        return requests.get(self.url + path, timeout=timeout, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> requests.Response:
        """Send a POST request with `body` as JSON; None for no body."""
        if body is not None:
            options["data"] = json.dumps(body)
            options["headers"] = {"Content-Type": "application/json"} | options.get("headers", {})
        return requests.post(self.url + path, timeout=240, **options)

    def score(self, *items: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
        """Post items to `/v1/score` and return their scores."""
        reply = self.post("/v1/score", {"items": items}, **options)
        assert reply.status_code == 200, reply.text
        scores: list[dict[str, Any]] = reply.json()["scores"]
        return scores

    def processes(self) -> set[int]:
        """Return the ids of the server's child processes, which handle requests."""
        return {process.pid for process in psutil.Process(self.process.pid).children()}

    def workers(self) -> list[int]:
        """Return the process ids of gunicorn's workers."""
        commands = {pid: command_of(pid) for pid in self.processes()}
        return [pid for pid, command in commands.items() if command and b"isolation.supervisor" not in command]

    def stop(self) -> str:
        """Stop it with SIGTERM and return its log."""
        self.process.terminate()
        assert self.process.wait(START_SECONDS) == 0, self.log.read_text()
        return self.log.read_text()


@contextmanager
def running(folder: Path, *arguments: str, **variables: Any) -> Iterator[RewardServer]:
    """Run a `RewardServer` for the time of the block; yield it when it is ready."""
    server = RewardServer(folder, *arguments, **variables)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.process.terminate()
        server.process.wait(START_SECONDS)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a data set with golden responses, and return its path."""
    path = tmp_path_factory.mktemp("dataset") / "golden.json"
    path.write_text(json.dumps(DATASET))
    return path


@pytest.fixture(scope="session")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> Iterator[RewardServer]:
    """Run a server with two workers, custom functions and a data set, and without API keys."""
    with running(
        tmp_path_factory.mktemp("server"),
        *("--workers", "2", "--dataset", str(dataset)),
        REWARD_FUNCTIONS=os.pathsep.join(map(str, OWN_FUNCTIONS)),
        VERIFY_TIMEOUT=VERIFY_TIMEOUT,
    ) as one:
        yield one


@pytest.fixture(scope="session")
def hasty(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """Run a server on which an isolated sample may take a second, for requests whose isolated samples never end."""
    with running(
        tmp_path_factory.mktemp("hasty"),
        *("--workers", "2"),
        REWARD_FUNCTIONS=os.pathsep.join(map(str, OWN_FUNCTIONS)),
        VERIFY_TIMEOUT=1,  # expires
    ) as one:
        yield one


@pytest.fixture(scope="session")
def guarded(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """Run a server with two API keys and a limit of 100,000 bytes for bodies."""
    with running(
        tmp_path_factory.mktemp("guarded"),
        *("--workers", "2"),
        REWARD_SERVER_API_KEYS="first-key-of-tests, second-key-of-tests",
        MAX_BODY_BYTES=100_000,
    ) as one:
        yield one


@pytest.fixture
def start(needs_process: None, tmp_path: Path) -> Iterator[Callable[..., RewardServer]]:
    """Return a function that starts a server for this test and waits until it is ready."""
    with_servers: list[RewardServer] = []

    def make(*arguments: str, **options: Any) -> RewardServer:
        with_servers.append(RewardServer(tmp_path, *arguments, **options))
        with_servers[-1].wait_until_ready()
        return with_servers[-1]

    yield make
    for one in with_servers:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.wait(START_SECONDS)


@pytest.fixture
def redis(needs_redis: None, tmp_path: Path) -> Iterator[Redis]:
    """Run a Redis for one test."""
    one = Redis(tmp_path)
    yield one
    one.kill()
