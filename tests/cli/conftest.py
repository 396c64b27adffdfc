"""Run the command `rewardstack` in the test's process or in its own, with real services."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from rewardstack.cache import link, writer
from rewardstack.core import event_loop
from rewardstack.transport import timing
from rewardstack_cli import provenance, run
from tests.support.forked import Forked
from tests.support.servers import Redis, free_port
from tests.support.waiting import eventually

from .in_process import Result, run_in_process

COMMAND = (sys.executable, "-m", "rewardstack_cli")
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")
ROOT = Path(__file__).resolve().parents[2]
SOURCES = os.pathsep.join(str(ROOT / part) for part in ("client", "cli", "verifier", "services/rules"))


@dataclass
class Cli:
    """Runs `rewardstack` in a clean environment and in its own directory.

    Args:
        cwd: the directory.
        variables: environment variables in addition to those of `KEPT`, PYTHONPATH and COLUMNS.
        started: the processes that `start` has started.
    """

    cwd: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """Return the environment of the command."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, "PYTHONPATH": SOURCES, "COLUMNS": "200", **self.variables}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command as a process; the test needs `needs_process`."""
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

    def process(self, *arguments: str) -> Result:
        """Run the command as a process; the test needs `needs_process`."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        return Result(process.returncode, out, err)

    def __call__(self, *arguments: str) -> Result:
        """Run the command in the test's process."""
        result = run_in_process(arguments, self.cwd, self.environment())
        assert "Traceback" not in result.err, result.err
        return result


@dataclass
class RewardServer:
    """A real reward server.

    Args:
        url: its base URL.
    """

    url: str

    def is_ready(self) -> bool:
        """Return whether it can score: it listens before its isolated processes have started."""
        try:
            return requests.get(f"{self.url}/ready", timeout=60).ok
        except requests.RequestException:
            return False

    def items(self) -> int:
        """Return the number of samples that it has scored, from its metrics."""
        metrics = requests.get(f"{self.url}/metrics", timeout=60).text
        counts = [line for line in metrics.splitlines() if line.startswith("rewardstack_samples_total{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in counts)


@pytest.fixture(scope="session")
def reward_server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """Run a reward server with gunicorn, as `make up` does, without a result cache."""
    port = free_port()
    variables = {name: value for name, value in os.environ.items() if not name.startswith("REWARD")}
    arguments = ("--host", "127.0.0.1", "--port", str(port), "--workers", "2")
    log = tmp_path_factory.mktemp("reward_server") / "log"
    with log.open("wb") as file:
        environment = {**variables, "PYTHONPATH": SOURCES, "REWARD_CACHE_ITEMS": "0"}
        process = Forked("rewardstack_rules.run_reward_server", arguments, env=environment, stderr=file)
    server = RewardServer(f"http://127.0.0.1:{port}")
    try:
        eventually(server.is_ready, lambda: f"the reward server does not start: {log.read_text()[-2000:]}", 200)
        yield server
    finally:
        process.terminate()
        process.wait(200)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing expire, or be sent twice, only because the machine is busy."""
    for module in (provenance, run):
        monkeypatch.setattr(module, "IDENTITY_TIMEOUT", 60.0)
    monkeypatch.setattr(timing, "MIN_STUCK", 60.0)
    monkeypatch.setattr(link, "TIMEOUT", 60.0)
    monkeypatch.setattr(writer, "FLUSH_TIMEOUT", 60.0)
    monkeypatch.setattr(event_loop, "CLOSING_TIME", 60.0)


@pytest.fixture
def impatience(patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon on what a server says of itself: the test's server says nothing."""
    for module in (provenance, run):
        monkeypatch.setattr(module, "IDENTITY_TIMEOUT", 0.2)  # expires


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """Return the command without any settings."""
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
    """Return the command with the URL of the real reward server."""
    cli.variables["REWARD_SERVER_URL"] = reward_server.url
    return cli


@pytest.fixture
def start_redis(needs_redis: None, tmp_path: Path) -> Iterator[Callable[..., Redis]]:
    """Return a function that starts a real Redis with additional options."""
    started: list[Redis] = []

    def start(*options: str) -> Redis:
        started.append(Redis(tmp_path, *options))
        return started[-1]

    yield start
    for redis in started:
        redis.kill()
