"""The command as people run it, in a process of its own, and the real services it talks to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from tests.support.servers import Redis, free_port
from tests.support.waiting import eventually

COMMAND = (sys.executable, "-m", "rewardstack")
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")
ROOT = Path(__file__).resolve().parents[2]
SOURCES = os.pathsep.join([str(ROOT / "client"), str(ROOT / "services" / "rules")])


@dataclass
class Result:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass
class Cli:
    """Runs `rewardstack` in a clean environment, in a directory of its own.

    Args:
        cwd: the directory.
        variables: the environment beside what Python needs.
        started: its processes.
    """

    cwd: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, "PYTHONPATH": SOURCES, "COLUMNS": "200", **self.variables}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            (*COMMAND, *arguments),
            cwd=self.cwd,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def __call__(self, *arguments: str) -> Result:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in err
        return Result(process.returncode, out, err)


@dataclass
class RewardServer:
    """A real reward server.

    Args:
        url: its base URL.
    """

    url: str

    def is_ready(self) -> bool:
        """Whether it can score: what isolates rules starts later than what listens."""
        try:
            return requests.get(f"{self.url}/ready", timeout=60).ok
        except requests.RequestException:
            return False

    def items(self) -> int:
        """Samples it has scored so far, by its own count."""
        metrics = requests.get(f"{self.url}/metrics", timeout=10).text
        counts = [line for line in metrics.splitlines() if line.startswith("rewardstack_items_total{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in counts)


@pytest.fixture(scope="session")
def reward_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A reward server under gunicorn, as `make up` starts it, without a cache."""
    port = free_port()
    variables = {name: value for name, value in os.environ.items() if not name.startswith("REWARD")}
    arguments = ("--host", "127.0.0.1", "--port", str(port), "--workers", "2")
    log = tmp_path_factory.mktemp("reward_server") / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            (sys.executable, "-m", "rewardstack_rules.run_reward_server", *arguments),
            env={**variables, "PYTHONPATH": SOURCES, "REWARD_CACHE_ITEMS": "0"},
            stderr=file,
        )
    server = RewardServer(f"http://127.0.0.1:{port}")
    try:
        eventually(server.is_ready, lambda: f"the reward server does not start: {log.read_text()[-2000:]}", 200)
        yield server
    finally:
        process.terminate()
        process.wait(200)


@pytest.fixture
def cli(needs_process: None, tmp_path: Path) -> Iterator[Cli]:
    """The command, with nothing configured."""
    command = Cli(tmp_path)
    yield command
    for process in command.started:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def scoring(cli: Cli, reward_server: RewardServer) -> Cli:
    """The command, with the real reward server."""
    cli.variables["REWARD_SERVER_URL"] = reward_server.url
    return cli


@pytest.fixture
def start_redis(needs_redis: None, tmp_path: Path) -> Iterator[Callable[..., Redis]]:
    """Starts a real Redis with further options."""
    started: list[Redis] = []

    def start(*options: str) -> Redis:
        started.append(Redis(tmp_path, *options))
        return started[-1]

    yield start
    for redis in started:
        redis.kill()
