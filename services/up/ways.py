"""Which way the stack runs, and its commands whichever way that is.

`make up` takes containers where an engine answers, else local processes; STACK insists on one of the two. The other
commands act on what runs.
"""

from __future__ import annotations

from typing import Protocol

from services.stack import ports
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings, load
from services.up import consistency
from services.up.compose import commands as compose
from services.up.compose import engine, record
from services.up.compose.plan import plan as plan_compose
from services.up.native import commands as native
from services.up.native.plan import plan as plan_native
from services.up.plan import Plan


class Commands(Protocol):
    """What can be asked of a stack that runs, either way."""

    def status(self, run: RunDir, as_json: bool = False) -> None: ...

    def logs(self, run: RunDir, service: str = "", follow: bool = False) -> None: ...

    def down(self, run: RunDir) -> None: ...


COMMANDS: dict[str, Commands] = {"compose": compose, "native": native}
PLAN = {"compose": plan_compose, "native": plan_native}


def running_way(run: RunDir) -> str:
    """Which way the stack of this directory runs; empty where none does."""
    composed = record.recall(run)
    if composed and composed.up:
        return "compose"
    return "native" if run.recall() else ""


def commands(run: RunDir) -> Commands:
    """The commands of the way that the stack of this directory runs; the native ones say so where none does."""
    return COMMANDS[running_way(run) or "native"]


def choose(settings: Settings, run: RunDir) -> tuple[str, str]:
    """Which way to start the stack, and why.

    Raises:
        StackError: the way that STACK insists on cannot be had, or the stack runs the other way.
    """
    asked, now = settings["STACK"], running_way(run)
    if asked and now and asked != now:
        raise StackError(f"STACK={asked}: the stack runs already, with STACK={now}", "make down, then make up")
    if asked:
        return asked, f"STACK={asked}"
    if now:
        return now, "the stack runs this way"
    found, reason = engine.find()
    return ("compose", "an engine answers (STACK=native: local processes)") if found else ("native", reason)


def plan() -> None:
    """Print what `make up` would do, and why; changes nothing.

    Raises:
        StackError: a setting is wrong, or it could not be carried out.
    """
    settings = load(ROOT)
    planned = _plan(settings, RunDir(settings["RUN_DIR"]))
    planned.show()
    ports.require_free(planned.ports, planned.held)


def up() -> None:
    """Start the stack, wait until it is well, and score the shipped samples.

    Raises:
        StackError: a setting is wrong, a port is taken, or something does not come up.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    run.make()
    with run.lock():
        planned = _plan(settings, run)
        planned.announce()
        ports.require_free(planned.ports, planned.held)
        planned.carry_out()


def _plan(settings: Settings, run: RunDir) -> Plan:
    consistency.require(settings)
    way, reason = choose(settings, run)
    return PLAN[way](settings, run, reason)


def images() -> None:
    """Build the image of reward server and workers.

    Raises:
        StackError: no engine answers, or it could not be built.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    run.make()
    compose.images(settings, run)


def down(run: RunDir) -> None:
    """Stop what runs.

    Raises:
        StackError: something still runs.
    """
    commands(run).down(run)


def clean(run: RunDir) -> None:
    """Stop what runs, and remove what it has written: volumes and jobs too.

    Raises:
        StackError: something still runs, or cannot be removed.
    """
    down(run)
    if record.recall(run):
        compose.clean(run)
    run.remove()
