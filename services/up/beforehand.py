"""What `make up` looks at before anything is installed, with any Python alone.

It names all that is wrong at once. A model server that is left out for want of memory or space is no error: the plan
says so.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from services.models import machine
from services.models.machine import GIB
from services.stack import packages, ports, space, venv
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.refusal import refusal
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings, load
from services.up import model_servers
from services.up.choice import choose, running_way
from services.up.compose import engine
from services.up.compose.project import Project, project_name, require_own
from services.up.model_servers import SERVERS, ModelServer

MEMORY_BYTES = GIB // 2
"""For the services without models: with two server processes and a worker they take half of that."""
RUN_BYTES = GIB // 10
"""For logs and the queue, to begin with."""
LIMITS = (
    (resource.RLIMIT_NPROC, 200, "processes and threads", "u"),
    (resource.RLIMIT_NOFILE, 1024, "open files", "n"),
)
"""What supervisord insists on: a limit of this user's, how many there must be, of what, and the option of `ulimit`."""


def look() -> None:
    """See that the stack can be started here; a stack that runs already is changed, which `make up` looks at itself.

    Raises:
        StackError: it cannot; names everything that is wrong, each with its remedy.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    run.require_own()
    if running_way(run):
        return
    way, _ = choose(settings, run)
    checks: list[Callable[[], None]] = [partial(_require_makeable, run.path)]
    checks.append(partial(space.require, {**venv.disk_bytes(), run.path: RUN_BYTES}))
    if way == "compose":
        checks += _of_containers(settings, run)
    else:
        checks += (partial(_require_limit, *limit) for limit in LIMITS)
    if way == "native":
        checks += _of_processes(settings)
    problems = []
    for check in checks:
        try:
            check()
        except StackError as error:
            problems.append(str(error))
    if problems:
        raise StackError("\nerror: ".join(problems))
    if (free := machine.free_memory()) < MEMORY_BYTES:
        say(f"warning: {free / GIB:.1f} GiB of memory are free, and the services take {MEMORY_BYTES / GIB:.1f}")


def _require_makeable(path: Path) -> None:
    """See that something can be made in the run directory, or where it is to be; nothing of the trial stays."""
    at = space.existing(path)
    try:
        tempfile.TemporaryFile(dir=at).close()
    except OSError as error:
        if not space.is_disk(at):
            raise StackError(
                f"RUN_DIR: nothing can be made in {at}, which is no folder of a disk",
                f"name another one, such as {Path(tempfile.gettempdir(), 'rewards')}",
            ) from None
        raise refusal(OSError(error.errno, error.strerror, str(path))) from None


def _of_processes(settings: Settings) -> Iterator[Callable[[], None]]:
    """What is looked at where the services are local processes."""
    yield lambda: packages.require_installable(packages.missing_programs())
    chosen = model_servers.choose(settings, (), SERVERS).chosen
    yield partial(ports.require_free, model_servers.wanted_ports(settings, chosen))
    for server in chosen:
        yield partial(_require_possible, server, settings)


def _require_limit(limit: int, needed: int, what: str, option: str) -> None:
    """See that so many may be had, which this process then may have: root raises its own limit."""
    soft, most = resource.getrlimit(limit)
    if most == resource.RLIM_INFINITY or most >= needed:
        return
    try:
        resource.setrlimit(limit, (soft, needed))
    except (ValueError, OSError):
        raise StackError(
            f"ulimit -H{option} allows {most} {what}, and the services need {needed}",
            f"ulimit -{option} {needed} as root, or more in /etc/security/limits.conf and a new login",
        ) from None


def _require_possible(server: ModelServer, settings: Settings) -> None:
    if reason := model_servers.obstacle(server, settings):
        raise StackError(f"{server.switch}=on: {reason}", f"{server.switch}=off leaves it out")


def _of_containers(settings: Settings, run: RunDir) -> Iterator[Callable[[], None]]:
    """What is looked at where they are containers, of which there may be some that nobody has stopped."""
    project = Project(engine.require(), project_name())
    require_own(project, run)
    held = {port for container in project.containers() for port in container.ports}
    yield partial(ports.require_free, ports.composed(settings), held)
