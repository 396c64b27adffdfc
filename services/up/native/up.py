"""`make up`: from the settings to a table of scored samples."""

from __future__ import annotations

import time
from collections.abc import Sequence

from services.stack import packages, ports, template
from services.stack.console import say, step, tail
from services.stack.errors import StackError
from services.stack.given import FROM_THE_SYSTEM, from_environment
from services.stack.rundir import RunDir, Running
from services.stack.settings import Settings
from services.up import model_servers, samples
from services.up.model_servers import ModelServer
from services.up.native.health import services
from services.up.native.stack import Stack, describe
from services.up.native.supervision import State, Supervision

POLL_SECONDS = 0.2
SAY_SECONDS = 30.0
ENDED = ("BACKOFF", "EXITED", "FATAL")


def up(settings: Settings, run: RunDir, chosen: Sequence[ModelServer]) -> None:
    """Start what does not run yet, wait until it is well, and score the shipped samples.

    Args:
        settings: of the stack.
        run: its directory.
        chosen: model servers.

    Raises:
        StackError: a service does not come up, or a sample is not scored.
    """
    found = packages.require()
    supervision = Supervision(run)
    alive = bool(supervision.states())
    running = run.recall() if alive or supervision.members() else None
    stack = describe(settings, run, found, model_servers.install(chosen, settings), running)
    running = _start(supervision, run, stack, running, alive)
    with step("waiting until every service is well"):
        wait(run, running, settings)
    with step("scoring the shipped samples"):
        samples.score(settings, run, stack.names, {**stack.urls, "REWARD_CACHE_URL": settings.cache_url})
    samples.farewell(settings, stack.urls, str(run.logs))


def _start(supervision: Supervision, run: RunDir, stack: Stack, running: Running | None, alive: bool) -> Running:
    if alive and running and running.settings == stack.running(0).settings:
        return _refresh(supervision, run, running, stack.running(running.session))
    if running:
        with step("the settings have changed: stopping" if alive else "ending what a supervisord that was killed left"):
            supervision.stop()
        ports.require_free(stack.ports)
    with step(f"starting {', '.join(stack.names)} under supervisord"):
        template.write(stack.files, run.path)
        supervision.start({**from_environment(*FROM_THE_SYSTEM), **stack.given}, stack.running)
    return stack.running(0)


def _refresh(supervision: Supervision, run: RunDir, running: Running, wanted: Running) -> Running:
    supervision.start_stopped()
    changed = [name for name in wanted.services if _code(running, name) != _code(wanted, name)]
    if not changed:
        say("==> the services run already, with these settings")
        return running
    with step(f"the code or a file of {', '.join(changed)} has changed: restarting"):
        for name in changed:
            supervision.restart(name)
        run.remember(wanted)
    return wanted


def _code(running: Running, name: str) -> str | None:
    return running.code.get(name.partition("-")[0])


def wait(run: RunDir, running: Running, settings: Settings) -> None:
    """Wait until every service is well; names each as it becomes so.

    Raises:
        StackError: one ended, or time ran out; its last log lines are printed first.
    """
    supervision, start = Supervision(run), time.monotonic()
    first: dict[str, int] = {}
    said = 0.0
    waiting = {service.name: service for service in services(running.services)}
    while waiting:
        ended = [state.name for state in supervision.states() if _ended(state, first)]
        passed = time.monotonic() - start
        for name, service in list(waiting.items()):
            problem = service.probe(run, running)
            limit = "MODEL_UP_TIMEOUT" if service.loads else "UP_TIMEOUT"
            if name in ended or (problem and passed > settings.number(limit)):
                why = (
                    "it ends while it is starting" if name in ended else f"not well after {settings[limit]} s ({limit})"
                )
                say(f"--- last lines of {run.log(name)}\n{tail(run.log(name))}\n---")
                raise StackError(f"{name}: {why}: {problem}", f"{service.remedy}; then make up again")
            if not problem:
                say(f"    {name} is well after {passed:.1f} s")
                del waiting[name]
        if waiting and passed - said > SAY_SECONDS:
            said = passed
            say(f"    {', '.join(waiting)}: still starting after {passed:.0f} s (make logs s={next(iter(waiting))})")
        time.sleep(POLL_SECONDS if waiting else 0)


def _ended(state: State, first: dict[str, int]) -> bool:
    """Whether a service ended since it was first seen; supervisord may have started it again by now."""
    seen = first[state.name] = first.get(state.name) or state.pid
    return state.state in ENDED or state.pid != seen
