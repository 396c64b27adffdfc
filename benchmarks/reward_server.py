"""A real reward server for the benchmarks, and what its processes take."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import IO

from tests.support.servers import free_port

MARK = "REWARDSTACK_BENCHMARK"
"""A variable by which the server's processes, however they were started, are told from others."""
START_SECONDS = 60


class RewardServer:
    """gunicorn without any result cache.

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
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended meanwhile, or is not ours
                if self._mark in (folder / "environ").read_bytes().split(b"\0"):
                    lines = (folder / "smaps_rollup").read_text().splitlines()
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
        return total


@contextmanager
def reward_server(**variables: str) -> Iterator[RewardServer]:
    """A server with two workers that is ready, and gone afterwards.

    Args:
        variables: of its environment.
    """
    port, mark = free_port(), uuid.uuid4().hex
    own = {MARK: mark, "REWARD_CACHE_ITEMS": "0", "REWARD_CACHE_URL": "", "REWARD_SERVER_API_KEYS": "", **variables}
    command = [sys.executable, "-m", "rewardstack_rules.run_reward_server", "--host", "127.0.0.1"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--workers", "2", "--port", str(port)], env=os.environ | own, stdout=log, stderr=log
        )
        try:
            _wait(process, log)
            yield RewardServer(port, mark)
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        log.seek(0)
        said = log.read()
        if b"Running on" in said:
            return
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the reward server did not start:\n{said.decode(errors='replace')}")
        time.sleep(0.05)
