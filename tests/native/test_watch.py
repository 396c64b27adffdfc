"""`watch` does what supervisord cannot: it starts what was given up, kills what hangs, and rotates logs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import packages, template
from services.stack.rundir import RunDir, Running
from services.up.native import health, stack, watch
from services.up.native.health import problem
from services.up.native.programs import Program
from services.up.native.stack import Runtime, Stack
from services.up.native.supervisor import Supervisor
from services.up.native.watch import HungServices
from tests.native.nginx import load
from tests.support.waiting import eventually

SECONDS = 120.0
"""For the checks that are due and the time that they are given."""
Start = Callable[[int], tuple[RunDir, Running]]

pytestmark = pytest.mark.usefixtures("needs_stack")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a stack of nothing but a Redis, which is killed after so many seconds without an answer; 0: never."""
    run = RunDir(str(tmp_path))
    supervisor = Supervisor(run)

    def started(seconds: int) -> tuple[RunDir, Running]:
        made = described(run, seconds)
        made = replace(made, programs=[one for one in made.programs if one.name == "cache"])
        made.secrets.write()
        template.write(made.files(run), run.path)
        supervisor.start(dict(os.environ), made.to_state)
        running = run.load()
        assert running
        eventually(lambda: not problem("cache", run, running))
        return run, running

    yield started
    supervisor.stop()


def described(run: RunDir, unhealthy_timeout: int = 0) -> Stack:
    """Return a stack without model servers."""
    run.make()
    return stack.describe(load(UNHEALTHY_TIMEOUT=unhealthy_timeout), run, Runtime(packages.find()), [], None)


def pid(run: RunDir) -> int:
    """Return the process id of the Redis, 0 where there is none."""
    return next((state.pid for state in Supervisor(run).states()), 0)


def test_hanging(start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A service that was healthy and hangs is killed, and another process takes its place."""
    run, running = start(0)
    hung, first = HungServices(run, 1.0), pid(run)

    def is_known_to_be_healthy() -> bool:
        hung.check()
        return f"cache (pid {first}) is healthy" in capsys.readouterr().out

    def has_another_process() -> bool:
        hung.check()
        return pid(run) not in (0, first)

    eventually(is_known_to_be_healthy)
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(health, "BUSY_TIMEOUT_SECONDS", 0.5)  # expires

    eventually(has_another_process)
    eventually(lambda: not problem("cache", run, running))
    assert f"cache (pid {first}) has not been healthy for 1 s" in capsys.readouterr().out


@pytest.mark.nightly
def test_hanging_by_the_clock(start: Start) -> None:
    """A service that hangs is killed while a stack runs, without anybody's doing."""
    run, running = start(5)
    first = pid(run)
    log = run.log("watch")
    eventually(lambda: f"cache (pid {first}) is healthy" in log.read_text())
    os.kill(first, signal.SIGSTOP)

    eventually(lambda: pid(run) not in (0, first), log.read_text, SECONDS)
    eventually(lambda: not problem("cache", run, running))
    assert f"cache (pid {first}) has not been healthy for 5 s" in log.read_text()


def test_given_up(tmp_path: Path) -> None:
    """A program that dies more often than supervisord allows is started again until it lives; a halted one is not."""
    run, exists = RunDir(str(tmp_path)), tmp_path / "exists"
    script = f"echo begun; test -e {exists} && exec sleep 1000"
    dying = [Program(name, ["/bin/sh", "-c", script], 10) for name in ("dying", "halted")]
    made = replace(described(run), programs=dying, watch=Program("watch", ["/bin/sleep", "1000"], 40))
    files = made.files(run)
    files["supervisord.conf"] = files["supervisord.conf"].replace("startretries = 30", "startretries = 0")
    template.write(files, run.path)
    supervisor = Supervisor(run)

    def states() -> dict[str, str]:
        supervisor.restart_failed()
        return {state.name: state.state for state in supervisor.states()}

    try:
        supervisor.start(dict(os.environ), made.to_state)
        eventually(lambda: (states(), run.log("dying").read_text().count("begun") > 2)[1])
        eventually(lambda: states()["halted"] != "FATAL")
        supervisor.halt("halted")
        exists.touch()
        eventually(lambda: states()["dying"] == "RUNNING")
        assert states()["halted"] == "STOPPED"
    finally:
        supervisor.stop()


def test_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large log is renamed while a program writes it, and no line is lost; a small one stays."""
    run = RunDir(str(tmp_path))
    count = "at=0; while sleep 0.01; do at=$((at + 1)); echo $at; done"
    programs = [Program("counting", ["/bin/sh", "-c", count], 10), Program("quiet", ["/bin/sleep", "1000"], 20)]
    made = replace(described(run), programs=programs, watch=Program("watch", ["/bin/sleep", "1000"], 40))
    template.write(made.files(run), run.path)
    monkeypatch.setattr(watch, "LOG_BYTES", 10)
    log, earlier = run.log("counting"), run.logs / "counting.log.1"
    supervisor = Supervisor(run)
    try:
        supervisor.start(dict(os.environ), made.to_state)
        eventually(lambda: log.exists() and log.stat().st_size > 10)
        watch.rotate_logs(run)
        eventually(lambda: log.exists() and log.stat().st_size > 10)
    finally:
        supervisor.stop()

    numbers = [int(line) for file in (earlier, log) for line in file.read_text().splitlines()]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert not (run.logs / "quiet.log.1").exists()
