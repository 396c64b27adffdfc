"""Run what jobs need in addition to a reward server: a persistent queue, and workers that a test can kill."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.forked import Forked
from tests.support.servers import Program, Redis

PERSISTENT = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
START_SECONDS = 200


class Queue(Redis):
    """A real Redis that keeps all data on disk, even if it is killed.

    Args:
        folder: folder for its files.
        options: additional options of `redis-server`, which override `PERSISTENT`.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, *PERSISTENT, *options)


class Worker(Program):
    """A worker in its own process.

    Args:
        folder: folder for its log.
        environment: all its environment variables.
        name: name of its log file, without `.log`.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], name: str = "worker") -> None:
        self.log = folder / f"{name}.log"
        self._environment = dict(environment)
        self.start()

    def start(self) -> None:
        """Start it, also after a kill; return without waiting until it is ready."""
        with self.log.open("ab") as log:
            self.process = Forked("rewardstack_rules.jobs.worker", env=self._environment, stderr=log)

    def wait_until_ready(self) -> None:
        """Return when its log says that this process runs."""
        mine, end = f'-{self.process.pid}"', time.monotonic() + START_SECONDS
        while '"Running as ' not in self.log.read_text() or mine not in self.log.read_text():
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> int:
        """Stop it with SIGTERM and return its exit status."""
        self.process.terminate()
        return self.process.wait(START_SECONDS)
