"""What jobs need beside a reward server: a queue that persists, and workers to be killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.servers import Program, Redis

PERSISTENT = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
START_SECONDS = 200


class Queue(Redis):
    """A real Redis that keeps everything on disk, also when it is killed.

    Args:
        folder: for its files.
        options: further options of `redis-server`; they beat `PERSISTENT`.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, *PERSISTENT, *options)


class Worker(Program):
    """A worker in a process of its own.

    Args:
        folder: for its log.
        environment: of it.
        name: of its log file.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], name: str = "worker") -> None:
        self.log = folder / f"{name}.log"
        self._environment = dict(environment)
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again; returns at once."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rewardstack_rules.jobs.worker"], stderr=log, env=self._environment
            )

    def wait_until_ready(self) -> None:
        """Returns when its log says that it runs."""
        mine, end = f'-{self.process.pid}"', time.monotonic() + START_SECONDS
        while '"Running as ' not in self.log.read_text() or mine not in self.log.read_text():
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> int:
        """Stops it with SIGTERM; its exit status."""
        self.process.terminate()
        return self.process.wait(START_SECONDS)
