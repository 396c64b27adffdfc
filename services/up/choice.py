"""Which way the stack runs, and which way it is started; told without anything but Python."""

from __future__ import annotations

from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.compose import engine, record


def running_way(run: RunDir) -> str:
    """Which way the stack of this directory runs; empty where none does."""
    composed = record.recall(run)
    if composed and composed.up:
        return "compose"
    running = run.recall()
    return running.way if running else ""


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
