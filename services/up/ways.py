"""Which way the stack runs, and its commands whichever way that is.

`make up` takes containers where an engine answers, else local processes; STACK insists on one of the two, or on
Apptainer's images. The other commands act on what runs.
"""

from __future__ import annotations

from services.stack import ports
from services.stack.console import say
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings, load, misspelt
from services.up import consistency
from services.up.apptainer import shell
from services.up.apptainer.plan import plan as plan_apptainer
from services.up.choice import choose
from services.up.compose.images import make_image
from services.up.compose.plan import plan as plan_compose
from services.up.native.plan import plan as plan_native
from services.up.plan import Plan

PLAN = {"compose": plan_compose, "native": plan_native, "apptainer": plan_apptainer}


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
    settings, ignored = shell.without_own(settings, run)
    for name, address in ignored.items():
        say(f"==> {name}={address} is of `stack.sh env`, and names no server elsewhere: it is ignored")
    consistency.require(settings)
    for name, meant in misspelt().items():
        say(f"warning: {name} is no setting and has no effect; did you mean {meant}?")
    way, reason = choose(settings, run)
    return PLAN[way](settings, run, reason)


def images(registry: str) -> None:
    """Build the image of reward server and workers.

    Args:
        registry: that it is pushed to; empty for none.

    Raises:
        StackError: no engine answers, it could not be built, or the registry does not take it.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    run.make()
    make_image(settings, run, registry)
