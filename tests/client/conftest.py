"""Fixtures of the client's tests: a fake reward server, a Redis, a script runner, a clock."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rewardstack import client
from rewardstack.cache import link, writer
from rewardstack.transport import timing
from tests.support.clock import Clock
from tests.support.servers import FaultServer, Redis, fault_server

ROOT = Path(__file__).resolve().parents[2]
SLOW = re.compile(r".*; unavailable for \d+ s, retrying for up to \d+ s\n")
"""What the client logs while a busy machine lets it wait."""
Script = Callable[..., str]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """Run a fake reward server with faults on demand, and set REWARD_SERVER_URL.

    A request counts as stuck only after a minute, because on a busy machine, hedges would change the number of
    requests.
    """
    monkeypatch.setattr(timing, "MIN_STUCK", 60.0)
    with fault_server() as one:
        monkeypatch.setenv("REWARD_SERVER_URL", one.url)
        yield one


@pytest.fixture
def redis(needs_redis: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """Run a Redis for one test, and set REWARD_CACHE_URL; on a busy machine, it may take a minute to answer."""
    monkeypatch.setattr(link, "TIMEOUT", 60.0)
    monkeypatch.setattr(writer, "FLUSH_TIMEOUT", 60.0)
    one = Redis(tmp_path)
    monkeypatch.setenv("REWARD_CACHE_URL", one.url)
    yield one
    one.kill()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Replace the clock of this process, to let time pass without waiting; the test has clients of its own."""
    one = Clock(monkeypatch)
    monkeypatch.setattr(client, "_clients", {})
    yield one
    for loop, used in client._clients.items():  # otherwise their timers would see the clock go back
        asyncio.run_coroutine_threadsafe(used.close(), loop).result(60)


@pytest.fixture
def run_script(needs_process: None) -> Script:
    """Return a function that runs a Python script in a process and returns its output; its stderr must be empty."""

    def run(text: str, timeout: float = 200) -> str:
        path = os.pathsep.join(str(ROOT / folder) for folder in ("client", "verifier", "services/rules", "."))
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(text)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
        assert SLOW.sub("", done.stderr) == ""
        return done.stdout.strip()

    return run
