"""Servers for the benchmarks, a real reward server and a bare one, and what their processes take."""

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
"""A variable by which the server's processes, however they were started, are told from others. Isolated processes
inherit few variables, `LC_*` among them."""
START_SECONDS = 60


class Server:
    """gunicorn with two workers.

    Args:
        port: where it listens.
        mark: value of `MARK` in the environment of its processes.
    """

    def __init__(self, port: int, mark: str) -> None:
        self.port = port
        self._mark = f"{MARK}={mark}".encode()

    def connect(self) -> HTTPConnection:
        """A connection that stays open."""
        return HTTPConnection("127.0.0.1", self.port, timeout=120)

    def memory(self) -> int:
        """Bytes that all its processes take; what they share counts once (the sum of their PSS)."""
        total = 0
        for folder in self._processes():
            with suppress(OSError):  # it ended meanwhile, or is not ours
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
        return total

    def processor_seconds(self) -> float:
        """Seconds of processors that its processes, and those that have ended, have had."""
        ticks = 0
        for folder in self._processes():
            with suppress(OSError):  # it ended meanwhile: those it left behind count it
                ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _processes(self) -> Iterator[Path]:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended meanwhile, or is not ours
                if self._mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield folder


@contextmanager
def reward_server(**variables: str) -> Iterator[Server]:
    """A reward server with two workers that is ready, and gone afterwards; without result cache unless told otherwise.

    Args:
        variables: of its environment.
    """
    own = {"REWARD_CACHE_ITEMS": "0", "REWARD_CACHE_URL": "", "REWARD_SERVER_API_KEYS": "", **variables}
    command = [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--host", "127.0.0.1", "--workers", "2"]
    with _serving(lambda port: [*command, "--port", str(port)], own, b"Running on") as server:
        yield server


@contextmanager
def bare_server() -> Iterator[Server]:
    """A bare Flask server (`bare`), run as the reward server is."""
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
        said = log.read()
        if ready in said:
            return
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the server did not start:\n{said.decode(errors='replace')}")
        time.sleep(0.05)
