"""`make up`: from the settings to a table of scored samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.stack import packages, template
from services.stack.console import say, step
from services.stack.given import FROM_THE_SYSTEM, from_environment
from services.stack.rundir import RunDir, Running
from services.stack.settings import Settings
from services.up import model_servers, samples
from services.up.model_servers import ModelServer
from services.up.native.stack import Stack, describe
from services.up.native.supervision import Supervision
from services.up.native.waiting import NeverWell, Watch
from services.up.services import service_of


def up(settings: Settings, run: RunDir, chosen: Sequence[ModelServer]) -> None:
    """Start what does not run yet, wait until it is well, and score the shipped samples.

    Args:
        settings: of the stack.
        run: its directory.
        chosen: model servers.

    Raises:
        StackError: a service does not come up, or a sample is not scored.
    """
    found, chosen = packages.require(), model_servers.install(chosen, settings)
    supervision = Supervision(run)
    if not supervision.states() and supervision.members():
        with step("ending what a supervisord that was killed left"):
            supervision.stop()
    started: set[str] = set()
    while True:
        stack = describe(settings, run, found, chosen, run.recall())
        started |= bring_up(supervision, run, stack, from_environment(*FROM_THE_SYSTEM))
        try:
            with step("waiting until every service is well"):
                Watch(run, settings).wait()
            break
        except NeverWell as error:
            chosen = _without(error, chosen, settings, supervision, started)
    assert stack.cache
    with step("scoring the shipped samples"):
        samples.score(settings, run, stack.names, {**stack.urls, "REWARD_CACHE_URL": stack.cache.url})
    samples.farewell(settings, stack.urls, str(run.logs), stack.cache.published)


def bring_up(supervision: Supervision, run: RunDir, stack: Stack, environment: Mapping[str, str]) -> set[str]:
    """Start the stack, or restart what has changed of it; returns the names of what was started.

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
        return _update(supervision, run, stack.running(running.session), running, why)
    with step(f"starting {', '.join(stack.names)} under supervisord"):
        supervision.start(environment, stack.running)
    return {*stack.names}


def _update(supervision: Supervision, run: RunDir, wanted: Running, running: Running, why: dict[str, str]) -> set[str]:
    added, changed, removed = supervision.reread()
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
    run.remember(wanted)
    if not started and wanted == running:
        say("==> the services run already, with these settings")
    return started


def _without(
    error: NeverWell, chosen: Sequence[ModelServer], settings: Settings, supervision: Supervision, started: set[str]
) -> list[ModelServer]:
    """The model servers without the one that never was well, which is stopped.

    Raises:
        NeverWell: the stack cannot do without this service.
    """
    if error.service not in started:
        raise error  # it was well once, and is started again for ever
    supervision.halt(error.service)
    left = model_servers.without(chosen, service_of(error.service))
    if any(settings[server.switch] == "on" for server in chosen if server not in left) or len(left) == len(chosen):
        raise error
    say(f"==> no {error}")
    return left
