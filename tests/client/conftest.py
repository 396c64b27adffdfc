"""What the client's tests share: a clean environment, a faulty server, a script runner."""

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
    """No setting of the developer's own reaches a test."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A faulty reward server, to which REWARD_SERVER_URL points."""
    with fault_server() as one:
        monkeypatch.setenv("REWARD_SERVER_URL", one.url)
        yield one


@pytest.fixture
def redis(needs_redis: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """A Redis of the test's own, to which REWARD_CACHE_URL points."""
    one = Redis(tmp_path)
    monkeypatch.setenv("REWARD_CACHE_URL", one.url)
    yield one
    one.kill()


@pytest.fixture
def run_script(needs_process: None) -> Script:
    """Runs a script in a process of its own and returns what it printed; its stderr must stay empty."""

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
