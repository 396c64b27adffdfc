"""Checks before `make up` installs or starts anything; any Python runs them.

`check` reports every problem together, each with its remedy.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rewardstack_settings.kinds import SHORTEST_KEY
from services.gateway import tls
from services.models import machine
from services.models.machine import GIB
from services.stack import packages, ports, space, venv
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings, load, misspelled
from services.up import deployment, model_servers
from services.up.apptainer import shell
from services.up.compose import engine
from services.up.compose.project import Project, project_name, require_own
from services.up.model_servers import EMBEDDING, JUDGE, SERVERS, ModelServer

MEMORY_BYTES = GIB // 2
"""For the services without models; two server processes and a worker take half of that."""
RUN_BYTES = GIB // 10
"""For logs and the queue at first."""
LIMITS = (
    (resource.RLIMIT_NPROC, 200, "processes and threads", "u"),
    (resource.RLIMIT_NOFILE, 1024, "open files", "n"),
)
"""A limit of this user, how many supervisord and the services need, of what, and the option of `ulimit`."""
KEYS = {JUDGE: "LLM_JUDGE_SERVER_API_KEY", EMBEDDING: "EMBEDDING_SERVER_API_KEY"}
"""The setting that holds the key of each model server."""


def check() -> None:
    """Check that the stack can be started here. A running stack has its ports and memory: `make up` checks the rest.

    Raises:
        StackError: it cannot; names every problem.
    """
    settings, run = read_settings(quiet=True)
    run.require_own()
    if deployment.running(run):
        return
    name, _ = deployment.choose(settings, run)
    checks: list[Callable[[], None]] = [partial(_require_writable, run.path)]
    checks.append(partial(space.require, {**venv.disk_bytes(), run.path: RUN_BYTES}))
    if name == "compose":
        checks += _of_containers(settings, run)
    else:
        checks += (partial(_require_limit, *limit) for limit in LIMITS)
    if name == "native":
        checks += _of_processes(settings)
    problems = []
    for one in checks:
        try:
            one()
        except StackError as error:
            problems.append(str(error))
    if problems:
        raise StackError("\nERROR: ".join(problems))
    if (free := machine.free_memory()) < MEMORY_BYTES:
        say(f"warning: {free / GIB:.1f} GiB of memory are free, and the services need {MEMORY_BYTES / GIB:.1f}")


def read_settings(quiet: bool = False) -> tuple[Settings, RunDir]:
    """Return the settings of the stack, which fit one another, and its run directory.

    Args:
        quiet: print no warnings about variables that have no effect.

    Raises:
        StackError: a setting is wrong, or contradicts another one.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    settings, ignored = shell.without_own(settings, run)
    require_consistent(settings)
    if not quiet:
        for name, url in ignored.items():
            say(f"warning: {name}={url} comes from `stack.sh env` and names no external server; ignored")
        for name, meant in misspelled().items():
            say(f"warning: {name} is no setting and has no effect; did you mean {meant}?")
    return settings, run


def require_consistent(settings: Settings) -> None:
    """Check that the settings fit one another and that the files they name are there.

    Raises:
        StackError: two settings contradict each other, and it names both; or a file is missing.
    """
    for name in settings:
        settings.files(name)
    tls.require(settings)
    for server in SERVERS:
        external = model_servers.is_external(server, settings)
        if settings[server.switch] == "on" and external:
            raise StackError(
                f"{server.switch}=on starts a server here, and {server.url} names an external one",
                f"unset {server.url}, or {server.switch}=off",
            )
        key = settings[KEYS[server]]
        if key and len(key) < SHORTEST_KEY and settings[server.switch] != "off" and not external:
            raise StackError(
                f"{KEYS[server]}: its value has fewer than {SHORTEST_KEY} characters",
                "generate one: openssl rand -hex 32",
            )
    if settings["STACK"] in ("native", "apptainer") and settings["MONITORING"] == "on":
        raise StackError(f"MONITORING=on needs Docker, and STACK={settings['STACK']} has none", "choose one of the two")


def _require_writable(path: Path) -> None:
    """Check that files can be created in the run directory, or where it will be."""
    at = space.existing(path)
    try:
        tempfile.TemporaryFile(dir=at).close()
    except OSError as error:
        if not space.is_disk(at):
            raise StackError(
                f"RUN_DIR: no file can be created in {at}, which is not on a disk",
                f"name another folder, such as {Path(tempfile.gettempdir(), 'rewards')}",
            ) from None
        raise explain_os_error(OSError(error.errno, error.strerror, str(path))) from None


def _of_processes(settings: Settings) -> Iterator[Callable[[], None]]:
    yield lambda: packages.require_installable(packages.missing_programs())
    chosen = model_servers.choose(settings, (), SERVERS).chosen
    yield partial(ports.require_free, model_servers.wanted_ports(settings, chosen))
    for server in chosen:
        yield partial(_require_supported, server, settings)


def _of_containers(settings: Settings, run: RunDir) -> Iterator[Callable[[], None]]:
    project = Project(engine.require(), project_name())
    require_own(project, run)
    held = {port for container in project.containers() for port in container.ports}
    yield partial(ports.require_free, ports.composed(settings), held)


def _require_limit(limit: int, needed: int, what: str, option: str) -> None:
    """Check a limit of this user, and raise it for this process where that is allowed."""
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


def _require_supported(server: ModelServer, settings: Settings) -> None:
    if reason := model_servers.unsupported_reason(server, settings):
        raise StackError(f"{server.switch}=on: {reason}", f"{server.switch}=off leaves it out")
