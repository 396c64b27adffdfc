"""Run a real reward server or a bare Flask server for benchmarks, and measure its memory and CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import IO

from tests.support.servers import ROOT, free_port

MARK = "LC_REWARDSTACK_BENCHMARK"
"""Environment variable that identifies all processes of a server. It starts with `LC_`, because verifier processes
inherit only a few other variables."""
START_SECONDS = 60


class Server:
    """A running gunicorn with two workers.

    Args:
        port: port that it listens on.
        mark: value of `MARK` in the environment of its processes.
    """

    def __init__(self, port: int, mark: str) -> None:
        self.port = port
        self._mark = f"{MARK}={mark}".encode()

    def connect(self) -> HTTPConnection:
        """Return a new persistent connection to the server."""
        return HTTPConnection("127.0.0.1", self.port, timeout=120)

    def memory(self) -> int:
        """Return the memory of all its processes in bytes; shared memory counts once (sum of PSS)."""
        total = 0
        for folder in self._processes():
            with suppress(OSError):  # it ended meanwhile, or is not ours
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
        return total

    def processor_seconds(self) -> float:
        """Return the CPU seconds of its processes, including those that have ended."""
        ticks = 0
        for folder in self._processes():
            with suppress(OSError):  # it ended meanwhile: its parent counts its time
                ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _processes(self) -> Iterator[Path]:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended meanwhile, or is not ours
                if self._mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield folder


@contextmanager
def reward_server(**variables: str) -> Iterator[Server]:
    """Run a reward server with two workers; yield it once it is ready.

    Args:
        variables: environment variables of the server. By default, it has no result cache and no API keys.
    """
    own = {"REWARD_CACHE_ITEMS": "0", "REWARD_CACHE_URL": "", "REWARD_SERVER_API_KEYS": "", **variables}
    command = [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--host", "127.0.0.1", "--workers", "2"]
    with _serving(lambda port: [*command, "--port", str(port)], own, b"Running on") as server:
        yield server


@contextmanager
def bare_server() -> Iterator[Server]:
    """Run a bare Flask server (`bare`) with the same gunicorn workers; yield it once it is ready."""
    command = [sys.executable, "-m", "gunicorn", "--worker-class", "gthread", "--threads", "32", "--workers", "2"]
    with _serving(
        lambda port: [*command, "--bind", f"127.0.0.1:{port}", "benchmarks.bare:app"], {}, b"Listening"
    ) as one:
        yield one


@contextmanager
def _serving(command: Callable[[int], list[str]], variables: dict[str, str], ready: bytes) -> Iterator[Server]:
    port, mark = free_port(), uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, **variables}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command(port), cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            _wait(process, log, ready)
            yield Server(port, mark)
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], log: IO[bytes], ready: bytes) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        log.seek(0)
        output = log.read()
        if ready in output:
            return
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the server did not start:\n{output.decode(errors='replace')}")
        time.sleep(0.05)
