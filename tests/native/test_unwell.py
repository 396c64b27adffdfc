"""What lives and does not answer is ended, and started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import packages, template
from services.stack.rundir import RunDir
from services.up.native import stack
from services.up.native.health import probe
from services.up.native.supervision import Supervision
from tests.native.nginx import load
from tests.support.waiting import eventually

SECONDS = 120.0
"""For the checks that are due and the time that they are given."""

pytestmark = pytest.mark.usefixtures("needs_stack")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDir]:
    """The directory of a stack of nothing but a Redis, which may be unwell for five seconds."""
    made = RunDir(str(tmp_path))
    made.make()
    described = stack.describe(load(UNWELL_SECONDS=5), made, stack.Place(packages.find()), [], None)
    described = replace(described, programs=[one for one in described.programs if one.name == "cache"])
    described.secrets.write()
    template.write(described.files(made), made.path)
    supervision = Supervision(made)
    supervision.start(dict(os.environ), described.running)
    yield made
    supervision.stop()


def test_hanging(run: RunDir) -> None:
    """A service that was well and hangs has another process soon, which is well; one that is well keeps its own."""
    running = run.recall()
    assert running

    def pid() -> int:
        return next((state.pid for state in Supervision(run).states()), 0)

    eventually(lambda: not probe("cache", run, running))
    first = pid()
    log = run.log("supervisord-unwell")
    eventually(lambda: f"cache (pid {first}) is well" in log.read_text())
    os.kill(first, signal.SIGSTOP)

    eventually(lambda: pid() not in (0, first), log.read_text, SECONDS)
    eventually(lambda: not probe("cache", run, running))
    assert f"cache (pid {first}) has not been well for 5 s" in log.read_text()
