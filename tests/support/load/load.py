"""Run trainers that score steadily while the stack is disturbed, and collect the outcomes of their samples."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rewardstack.settings import DEFAULTS
from services.stack.rundir import ROOT
from tests.support.load import lanes
from tests.support.load.lanes import Lane
from tests.support.load.outcomes import Outcome
from tests.support.load.trainer import SENT

DRAIN_SECONDS = 300.0
"""Time limit for the samples that are in flight when the load ends."""


class Load:
    """A trainer process for each set of service URLs.

    Args:
        some: the lanes.
        addresses: the sets of service URLs by name (`Lane.way`): environment variables of the client.
        folder: folder for files.

    Attributes:
        outcomes: outcomes of the samples, after `end`.
        sent: number of samples that were sent, after `end`.
        faults: descriptions of lost samples and crashed trainers, after `end`.
    """

    def __init__(self, some: Sequence[Lane], addresses: Mapping[str, Mapping[str, str]], folder: Path) -> None:
        self.outcomes: list[Outcome] = []
        self.sent = 0
        self.faults: list[str] = []
        self._folder = folder
        self._trainers = {way: self._start(way, some, own) for way, own in addresses.items()}

    def _start(self, way: str, some: Sequence[Lane], addresses: Mapping[str, str]) -> subprocess.Popen[bytes]:
        lanes.write([lane for lane in some if lane.way == way], self._folder / f"{way}.json")
        kept = {name: text for name, text in os.environ.items() if name not in DEFAULTS}
        with (self._folder / f"{way}.out").open("wb") as out, (self._folder / f"{way}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.support.load.trainer", str(self._folder / f"{way}.json")],
                cwd=ROOT,
                env={**kept, **addresses, "REWARD_CACHE_ITEMS": "0"},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=log,
            )

    def end(self) -> None:
        """Stop sending; return when all samples in flight have an outcome, at most `DRAIN_SECONDS` per trainer."""
        for way, trainer in self._trainers.items():
            assert trainer.stdin is not None
            trainer.stdin.close()
            try:
                trainer.wait(DRAIN_SECONDS)
            except subprocess.TimeoutExpired:
                trainer.kill()
                trainer.wait()
            self._read(way, trainer.returncode)

    def _read(self, way: str, status: int) -> None:
        lines = (self._folder / f"{way}.out").read_text().splitlines()
        sent = [int(line.removeprefix(SENT)) for line in lines if line.startswith(SENT)]
        found = [Outcome.from_line(line) for line in lines if not line.startswith(SENT)]
        self.outcomes += found
        self.sent += sum(sent)
        if status != 0 or not sent:
            said = (self._folder / f"{way}.log").read_text(errors="replace")[-1000:]
            self.faults.append(f"the trainer by way {way} ended with {status} before its samples came back:\n{said}")
        elif sum(sent) != len(found):
            self.faults.append(f"{sum(sent)} samples were sent by way {way}, {len(found)} came back")

    def kill(self) -> None:
        """Kill the trainers."""
        for trainer in self._trainers.values():
            trainer.kill()
            trainer.wait()


@contextmanager
def steady(some: Sequence[Lane], addresses: Mapping[str, Mapping[str, str]]) -> Iterator[Load]:
    """Run a load; call `end` for its outcomes. After the block, its processes and files are removed.

    Args:
        some: as in `Load`.
        addresses: as in `Load`.
    """
    with tempfile.TemporaryDirectory() as folder:
        load = Load(some, addresses, Path(folder))
        try:
            yield load
        finally:
            load.kill()
