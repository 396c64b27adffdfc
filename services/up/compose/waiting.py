"""Waits until every container is well, and says how far it is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from services.stack.console import TAIL_LINES, say, tail
from services.stack.errors import StackError
from services.stack.settings import Settings
from services.up.compose.project import Container, Project
from services.up.native.health import LOADING, REMEDIES

POLL_SECONDS = 1.0
SAY_SECONDS = 30.0
GONE = ("exited", "dead", "removing")


class Watch:
    """What is known of the services that come up.

    Args:
        project: of the containers.
        settings: of the stack; they say how long a service may take.
    """

    def __init__(self, project: Project, settings: Settings) -> None:
        self._project = project
        self._settings = settings
        self._since: dict[str, float] = {}
        self._restarts: dict[str, int] = {}

    def problem(self, service: str, containers: Sequence[Container], now: float, settled: bool) -> str:
        """What keeps a service from being well; empty where it is.

        Args:
            service: its name.
            containers: all there are.
            now: seconds of a clock.
            settled: whether Compose has started all that it will.

        Raises:
            StackError: it ends while it starts, or takes too long; the last lines of its log are printed first.
        """
        own = [container for container in containers if container.service == service]
        for container in own:
            if container.restarts > self._restarts.setdefault(container.id, container.restarts):
                self._fail(container, "it ends while it is starting")
            if settled and container.state in GONE:
                self._fail(container, "it has ended")
        if any(container.state == "running" for container in own):
            self._since.setdefault(service, now)
        sick = [container for container in own if container.problem]
        limit = "MODEL_UP_TIMEOUT" if service in LOADING else "UP_TIMEOUT"
        if sick and now - self._since.get(service, now) > self._settings.number(limit):
            self._fail(sick[0], f"not well after {self._settings[limit]} s ({limit})")
        return sick[0].problem if sick else "" if own else "not created yet"

    def _fail(self, container: Container, why: str) -> None:
        lines = self._project.last_lines(container, TAIL_LINES)
        say(f"--- last lines of {container.name}\n{lines}\n---")
        remedy = REMEDIES.get(container.service, f"make logs s={container.service}")
        raise StackError(f"{container.name}: {why}: {container.problem}", f"{remedy}; then make up again")


def wait(
    project: Project, services: Sequence[str], settings: Settings, starting: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait until Compose has started every service and each is well; names each as it becomes so.

    Args:
        project: of the containers.
        services: their names.
        settings: of the stack.
        starting: Compose, at work.
        log: what it says.

    Raises:
        StackError: Compose gave up, a service ended, or time ran out; the last lines of a log are printed first.
    """
    watch, start, said = Watch(project, settings), time.monotonic(), 0.0
    before = {container.id for container in project.containers()}
    well: set[str] = set()
    while True:
        settled = starting.poll() is not None
        containers = project.containers()
        passed = time.monotonic() - start
        # Compose may be about to replace containers that were there before.
        certain = [container for container in containers if settled or container.id not in before]
        waiting = [service for service in services if watch.problem(service, certain, passed, settled)]
        for service in sorted({*services} - {*waiting} - well):
            say(f"    {service} is well after {passed:.1f} s")
        well = {*services} - {*waiting}
        if starting.returncode:
            raise _given_up(project, containers, log)
        if settled and not waiting:
            return
        if waiting and passed - said > SAY_SECONDS:
            said = passed
            say(f"    {', '.join(waiting)}: still starting after {passed:.0f} s (make logs s={waiting[0]})")
        time.sleep(POLL_SECONDS)


def _given_up(project: Project, containers: Sequence[Container], log: Path) -> StackError:
    for container in containers:
        if container.health == "unhealthy" or container.state in GONE:
            say(f"--- last lines of {container.name}\n{project.last_lines(container, TAIL_LINES)}\n---")
    say(f"--- last lines of {log}\n{tail(log)}\n---")
    return StackError("docker compose up failed", "the lines above say why; then make up again")
