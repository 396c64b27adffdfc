"""What supervisord gives up is started again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import template
from services.stack.rundir import RunDir
from services.up.native import stack
from services.up.native.programs import Program
from services.up.native.stack import Place
from services.up.native.supervision import Supervision
from tests.native.nginx import load
from tests.support.waiting import eventually

FOUND = Place({"nginx": "/usr/sbin/nginx", "redis-server": "/usr/bin/redis-server"})

pytestmark = pytest.mark.usefixtures("needs_process")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run directory."""
    made = RunDir(str(tmp_path))
    made.make()
    return made


@pytest.fixture
def supervision(run: RunDir) -> Iterator[Supervision]:
    """Of that directory; what it started is gone at the end."""
    made = Supervision(run)
    yield made
    made.stop()


def test_for_ever(run: RunDir, supervision: Supervision) -> None:
    """A program that dies more often than supervisord bears is started again until it lives; one that is halted not."""
    room = run.path / "room"
    script = f"echo begun; test -e {room} && exec sleep 1000"
    dying = [Program(name, ["/bin/sh", "-c", script], 10) for name in ("dying", "halted")]
    made = replace(stack.describe(load(), run, FOUND, [], None), programs=dying)
    files = made.files(run)
    files["supervisord.conf"] = files["supervisord.conf"].replace("startretries = 30", "startretries = 0")
    template.write(files, run.path)
    supervision.start(dict(os.environ), made.running)
    eventually(lambda: run.log("dying").read_text().count("begun") > 2)
    supervision.halt("halted")
    room.touch()
    eventually(lambda: "RUNNING" in {state.state for state in supervision.states() if state.name == "dying"})
    assert [state.state for state in supervision.states() if state.name == "halted"] == ["STOPPED"]
