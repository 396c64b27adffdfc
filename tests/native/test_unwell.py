"""What lives and does not answer is ended, and started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import packages, template
from services.stack.rundir import RunDir, Running
from services.up.native import health, stack
from services.up.native.health import probe
from services.up.native.supervision import Supervision
from services.up.native.unwell import Watch
from tests.native.nginx import load
from tests.support.waiting import eventually

SECONDS = 120.0
"""For the checks that are due and the time that they are given."""
Start = Callable[[int], tuple[RunDir, Running]]

pytestmark = pytest.mark.usefixtures("needs_stack")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a stack of nothing but a Redis, which is ended after so many seconds without an answer; 0: never."""
    run = RunDir(str(tmp_path))
    supervision = Supervision(run)

    def started(seconds: int) -> tuple[RunDir, Running]:
        run.make()
        described = stack.describe(load(UNHEALTHY_TIMEOUT=seconds), run, stack.Place(packages.find()), [], None)
        described = replace(described, programs=[one for one in described.programs if one.name == "cache"])
        described.secrets.write()
        template.write(described.files(run), run.path)
        supervision.start(dict(os.environ), described.running)
        running = run.recall()
        assert running
        eventually(lambda: not probe("cache", run, running))
        return run, running

    yield started
    supervision.stop()


def pid(run: RunDir) -> int:
    """Return the process id of the Redis, 0 where there is none."""
    return next((state.pid for state in Supervision(run).states()), 0)


def test_hanging(start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A service that was healthy and hangs is ended, and another process takes its place."""
    run, running = start(0)
    watch, first = Watch(run, 1.0), pid(run)

    def is_known_to_be_healthy() -> bool:
        watch.look()
        return f"cache (pid {first}) is well" in capsys.readouterr().err

    def has_another_process() -> bool:
        watch.look()
        return pid(run) not in (0, first)

    eventually(is_known_to_be_healthy)
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(health, "PATIENCE", 0.5)

    eventually(has_another_process)
    eventually(lambda: not probe("cache", run, running))
    assert f"cache (pid {first}) has not been well for 1 s" in capsys.readouterr().err


@pytest.mark.nightly
def test_hanging_by_the_clock(start: Start) -> None:
    """supervisord's clock has a service that hangs ended."""
    run, running = start(5)
    first = pid(run)
    log = run.log("supervisord-unwell")
    eventually(lambda: f"cache (pid {first}) is well" in log.read_text())
    os.kill(first, signal.SIGSTOP)

    eventually(lambda: pid(run) not in (0, first), log.read_text, SECONDS)
    eventually(lambda: not probe("cache", run, running))
    assert f"cache (pid {first}) has not been well for 5 s" in log.read_text()
