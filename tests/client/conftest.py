"""Fixtures of the client's tests: a clean environment, a fake reward server, a Redis, a script runner."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rewardstack.settings import DEFAULTS
from tests.support.servers import FaultServer, Redis, fault_server

ROOT = Path(__file__).resolve().parents[2]
Script = Callable[..., str]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the developer's settings from the environment."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """Run a fake reward server with faults on demand, and set REWARD_SERVER_URL."""
    with fault_server() as one:
        monkeypatch.setenv("REWARD_SERVER_URL", one.url)
        yield one


@pytest.fixture
def redis(needs_redis: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """Run a Redis for one test, and set REWARD_CACHE_URL."""
    one = Redis(tmp_path)
    monkeypatch.setenv("REWARD_CACHE_URL", one.url)
    yield one
    one.kill()


@pytest.fixture
def run_script(needs_process: None) -> Script:
    """Return a function that runs a Python script in a process and returns its output; its stderr must be empty."""

    def run(text: str, timeout: float = 30) -> str:
        path = os.pathsep.join(str(ROOT / folder) for folder in ("client", "verifier", "services/rules", "."))
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(text)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.strip()

    return run
