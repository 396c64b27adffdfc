"""Check that the stack can start, before `make up` installs or starts anything.

Most problems are reported together, each with its remedy. The checks need no third-party packages.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rewardstack_settings.kinds import MIN_KEY_LENGTH
from services.gateway import tls
from services.models import machine
from services.models.machine import GIB
from services.stack import packages, ports, space, venv
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings, load, misspelled_variables
from services.up import deployment, model_servers
from services.up.apptainer import shell
from services.up.compose import engine
from services.up.compose.project import Project, project_name, require_own
from services.up.model_servers import EMBEDDING, JUDGE, REWARD_MODEL, SERVERS, ModelServer

MEMORY_BYTES = GIB // 2
"""Bytes of memory for the services without models. Two server processes and a worker use half of it."""
RUN_BYTES = GIB // 10
"""Bytes of disk that logs and the queue need initially."""
LIMITS = (
    (resource.RLIMIT_NPROC, 200, "processes and threads", "u"),
    (resource.RLIMIT_NOFILE, 1024, "open files", "n"),
)
"""Hard limits to check. Each row has the constant of the limit, the value that supervisord and the services need, what
the limit counts, and the option of `ulimit`."""
MODEL_KEYS = {JUDGE: "LLM_JUDGE_SERVER_API_KEY", EMBEDDING: "EMBEDDING_SERVER_API_KEY"}
"""Setting with the API key of each model server."""


def check() -> None:
    """Check that the stack can start on this machine. Skip most checks if the stack already runs.

    Raises:
        StackError: the stack cannot start. If a setting is invalid or the container engine does not answer, the message
            has only this problem. Otherwise, it lists every problem.
    """
    settings, run = read_settings(quiet=True)
    run.require_own()
    if deployment.running(run):
        return
    name, _ = deployment.choose(settings, run)
    checks: list[Callable[[], None]] = [partial(_require_writable, run.path)]
    checks.append(partial(space.require, {**venv.disk_bytes(), run.path: RUN_BYTES}))
    if name == "compose":
        checks += _container_checks(settings, run)
    else:
        checks += (partial(_require_limit, *limit) for limit in LIMITS)
    if name == "native":
        checks += _process_checks(settings)
    problems = []
    for run_check in checks:
        try:
            run_check()
        except StackError as error:
            problems.append(str(error))
    if problems:
        raise StackError("\nERROR: ".join(problems))
    if (free := machine.free_memory()) < MEMORY_BYTES:
        say(f"warning: {free / GIB:.1f} GiB of memory are free, and the services need {MEMORY_BYTES / GIB:.1f}")


def read_settings(quiet: bool = False) -> tuple[Settings, RunDir]:
    """Return the validated settings of the stack, and its run directory.

    Args:
        quiet: whether to omit warnings about variables without effect.

    Raises:
        StackError: a setting is invalid, or contradicts another setting.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    settings, dropped = shell.drop_own_urls(settings, run)
    require_consistent(settings)
    if not quiet:
        for name, url in dropped.items():
            say(f"warning: {name}={url} is ignored: `stack.sh env` set it for this stack or for one that has ended")
        for name, meant in misspelled_variables().items():
            say(f"warning: unknown setting {name} has no effect; did you mean {meant}?")
    return settings, run


def require_consistent(settings: Settings) -> None:
    """Check that the settings are consistent and that the files they name exist.

    Raises:
        StackError: two settings contradict each other, a key is too short, a certificate is invalid, or a file is
            missing; the message names the settings.
    """
    for name in settings:
        settings.files(name)
    tls.check(settings)
    _require_own_reward_model(settings)
    for server in SERVERS:
        external = model_servers.is_external(server, settings)
        if settings[server.switch] == "on" and external:
            raise StackError(
                f"{server.switch}=on starts a server here, and {server.url_setting} names an external one",
                f"unset {server.url_setting}, or {server.switch}=off",
            )
        key = settings[MODEL_KEYS[server]]
        if key and len(key) < MIN_KEY_LENGTH and settings[server.switch] != "off" and not external:
            raise StackError(
                f"{MODEL_KEYS[server]}: its value has fewer than {MIN_KEY_LENGTH} characters",
                "generate one: openssl rand -hex 32",
            )
    if settings["STACK"] in ("native", "apptainer") and settings["MONITORING"] == "on":
        raise StackError(f"MONITORING=on needs Docker, and STACK={settings['STACK']} has none", "choose one of the two")


def _require_own_reward_model(settings: Settings) -> None:
    """Check the settings of the reward model that the stack serves. Do nothing if REWARD_MODEL_ID is empty.

    REWARD_MODEL_SERVER_URL must not name an external server. The reward model's key must be empty or the judge's key.
    """
    if not settings[REWARD_MODEL.switch]:
        return
    if model_servers.is_external(REWARD_MODEL, settings):
        raise StackError(
            f"{REWARD_MODEL.switch} starts a server here, and {REWARD_MODEL.url_setting} names an external one",
            "unset one of the two",
        )
    key, port_key = settings[model_servers.REWARD_MODEL_KEY], settings[model_servers.PORT_KEY]
    if key not in ("", port_key):
        raise StackError(
            f"{model_servers.REWARD_MODEL_KEY}: its value differs from {model_servers.PORT_KEY}, the key of the "
            f"judge's port, at which clients reach the reward model of {REWARD_MODEL.switch}",
            f"unset {model_servers.REWARD_MODEL_KEY}",
        )


def _require_writable(path: Path) -> None:
    """Check that files can be created in the run directory, or in its nearest existing parent if it does not exist."""
    folder = space.nearest_existing(path)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        if not space.is_disk(folder):
            raise StackError(
                f"RUN_DIR: no file can be created in {folder}, which is not on a disk",
                f"name another folder, such as {Path(tempfile.gettempdir(), 'rewards')}",
            ) from None
        raise explain_os_error(OSError(error.errno, error.strerror, str(path))) from None


def _process_checks(settings: Settings) -> Iterator[Callable[[], None]]:
    yield lambda: packages.require_installable(packages.missing_programs())
    chosen = model_servers.choose(settings, (), SERVERS).chosen
    yield partial(ports.require_free, model_servers.wanted_ports(settings, chosen))
    for server in chosen:
        yield partial(_require_supported, server, settings)


def _container_checks(settings: Settings, run: RunDir) -> Iterator[Callable[[], None]]:
    project = Project(engine.require(), project_name())
    require_own(project, run)
    held = {port for container in project.containers() for port in container.ports}
    yield partial(ports.require_free, ports.compose_ports(settings), held)


def _require_limit(limit: int, needed: int, what: str, option: str) -> None:
    """Check that a hard resource limit is high enough, or that this user may raise it."""
    soft, hard = resource.getrlimit(limit)
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return
    try:
        resource.setrlimit(limit, (soft, needed))
    except (ValueError, OSError):
        raise StackError(
            f"ulimit -H{option} allows {hard} {what}, and the services need {needed}",
            f"ulimit -{option} {needed} as root, or raise it in /etc/security/limits.conf and log in again",
        ) from None


def _require_supported(server: ModelServer, settings: Settings) -> None:
    if reason := model_servers.unsupported_reason(server, settings):
        raise StackError(f"{server.switch}=on: {reason}", f"{server.switch}=off disables it")
