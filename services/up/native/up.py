"""`make up`: from the settings to a table of scored samples."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.stack import packages, processes, template
from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.given import FROM_THE_SYSTEM, from_environment
from services.stack.rundir import ROOT, RunDir, Running
from services.stack.settings import Settings
from services.up import model_servers, samples
from services.up.model_servers import ModelServer
from services.up.native.programs import Program
from services.up.native.stack import Place, Stack, describe
from services.up.native.supervision import Supervision
from services.up.native.waiting import NeverWell, Watch
from services.up.services import TAKEN, service_of

LOADING_SECONDS = 10.0
"""That reward functions may take when they are looked at; what takes longer the reward server itself is waited for."""


def up(settings: Settings, run: RunDir, chosen: Sequence[ModelServer]) -> None:
    """Start what does not run yet, wait until it is well, and score the shipped samples.

    Args:
        settings: of the stack.
        run: its directory.
        chosen: model servers.

    Raises:
        StackError: a service does not come up, or a sample is not scored.
    """
    place, chosen = Place(packages.require()), model_servers.install(chosen, settings)
    stack = start(settings, run, place, chosen)
    samples.farewell(settings, stack.urls, str(run.logs), stack.cache.published if stack.cache else "")


def start(settings: Settings, run: RunDir, place: Place, chosen: Sequence[ModelServer]) -> Stack:
    """What `up` does once the programs are there, but for the farewell; returns what runs.

    Args:
        settings: of the stack.
        run: its directory.
        place: where programs run.
        chosen: model servers.

    Raises:
        StackError: as `up` does.
    """
    supervision = Supervision(run)
    if not supervision.states() and supervision.members():
        with step("ending what a supervisord that was killed left"):
            supervision.stop()
    while True:
        stack, logged = describe(settings, run, place, chosen, run.recall()), run.log_sizes()
        require_functions(settings, stack.programs)
        bring_up(supervision, run, stack, from_environment(*FROM_THE_SYSTEM))
        try:
            with step("waiting until every service is well"):
                Watch(run, settings, logged).wait()
            break
        except NeverWell as error:
            chosen = _left(error, chosen, settings, supervision)
    with step("scoring the shipped samples"):
        addresses = {**stack.urls, **({"REWARD_CACHE_URL": stack.cache.url} if stack.cache else {})}
        samples.score(settings, run, stack.names, addresses, stack.judge_model)
    return stack


def require_functions(settings: Settings, services: Sequence[Program]) -> None:
    """See that the reward server can load the user's reward functions, before one that runs is restarted into them.

    Args:
        settings: of the stack.
        services: that are to run.

    Raises:
        StackError: it cannot, and why.
    """
    files = settings.files("REWARD_FUNCTIONS")
    if not files:
        return
    rules = next(service for service in services if service.name == "rules")
    with subprocess.Popen(
        [*rules.prefix, rules.command[0], "-m", "rewardstack_rules.functions.catalogue", *map(str, files)],
        env={**from_environment(*FROM_THE_SYSTEM), **rules.environment},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            _, told = process.communicate(timeout=LOADING_SECONDS)
        except subprocess.TimeoutExpired:
            return
        finally:
            # What runs it in an image, and what it has started itself, would outlive it.
            processes.end(lambda: [*processes.members(process.pid)])
    if process.returncode != 0:
        why = (told.strip().splitlines() or ["no word of it"])[-1]
        raise StackError(f"REWARD_FUNCTIONS: {why.removeprefix('REWARD_FUNCTIONS: ')}")


def bring_up(supervision: Supervision, run: RunDir, stack: Stack, environment: Mapping[str, str]) -> None:
    """Start the stack, or restart what has changed of it.

    Args:
        supervision: of the run directory.
        run: directory of the stack.
        stack: what is to run.
        environment: that supervisord is given where it is started.
    """
    running = run.recall() if supervision.states() else None
    why = {program.name: ", ".join(program.changes(run)) for program in stack.programs}
    stack.secrets.write()
    template.write(stack.files(run), run.path)
    if running:
        _update(supervision, run, stack.running(running.session), running, why)
        return
    with step(f"starting {', '.join(stack.names)} under supervisord"):
        supervision.start(environment, stack.running)


def _update(supervision: Supervision, run: RunDir, wanted: Running, running: Running, why: dict[str, str]) -> None:
    added, changed, removed = supervision.reread()
    # What is started anew has not been well yet, also where this is interrupted.
    well = {*running.well} - {*added, *changed, *removed}
    run.remember(replace(running, well=sorted(well)))
    if wanted.gateway != running.gateway:
        with step("the gateway takes up its new configuration"):
            supervision.reload_gateway()
    for name in removed:
        with step(f"stopping {name}"):
            supervision.remove(name)
    for name in changed:
        with step(f"restarting {name} (changed: {why.get(name, 'how it is supervised')})"):
            supervision.remove(name)
            supervision.add(name)
    for name in added:
        say(f"==> starting {name}")
        supervision.add(name)
    started = {*added, *changed, *supervision.start_stopped()}
    run.remember(replace(wanted, well=sorted(well - started)))
    if not started and wanted == replace(running, well=[]):
        say("==> the services run already, with these settings")


def _left(
    error: NeverWell, chosen: Sequence[ModelServer], settings: Settings, supervision: Supervision
) -> list[ModelServer]:
    """The model servers without the one that never was well.

    Where the stack cannot do without a service whose port somebody else has, it is stopped: workers would send that
    one what they judge, and keys.

    Raises:
        NeverWell: the stack cannot do without this service.
    """
    try:
        return _without(error, chosen, settings, supervision)
    except NeverWell:
        if TAKEN in error.problem:
            with step("stopping the services, which would send keys and prompts to that port"):
                supervision.stop()
        raise


def _without(
    error: NeverWell, chosen: Sequence[ModelServer], settings: Settings, supervision: Supervision
) -> list[ModelServer]:
    """The model servers without the one that never was well, which is stopped.

    Raises:
        NeverWell: the stack cannot do without this service.
    """
    if error.service in error.well:
        raise error  # it is started again for ever
    service = service_of(error.service)
    for state in supervision.states():
        if service_of(state.name) == service and state.name not in error.well:
            supervision.halt(state.name)
    left = model_servers.without(chosen, service)
    if any(settings[server.switch] == "on" for server in chosen if server not in left) or len(left) == len(chosen):
        raise error
    say(f"==> no {error}")
    return left
