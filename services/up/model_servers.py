"""Which model servers `make up` starts: the judge, the embedding server, judges by name, or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from services.judge import engine
from services.models import environment, machine
from services.models.environment import Models
from services.models.machine import GIB
from services.stack import ports
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import ROOT
from services.stack.settings import Settings, load
from services.up.services import kind_of


@dataclass(frozen=True)
class ModelServer:
    """A judge or an embedding server.

    Args:
        name: of the service.
        switch: setting that leaves it in or out.
        url: setting that names an external one.
        port: setting of its port at the gateway.
        folder: setting of the folder in which replicas on other nodes register.
        memory: bytes that it takes with a small model on a processor.
        model: that it serves; empty where the settings say which.
        replicas: of it; those of the default judge are a setting.
        judges: names in the file of routes that it answers to.
    """

    name: str
    switch: str
    url: str
    port: str
    folder: str
    memory: int
    model: str = ""
    replicas: int = 1
    judges: tuple[str, ...] = field(default=(), compare=False)


JUDGE = ModelServer("judge", "JUDGE", "LLM_JUDGE_SERVER_URL", "JUDGE_PORT", "JUDGE_REPLICAS_DIR", 4 * GIB)
EMBEDDING = ModelServer(
    "embedding", "EMBEDDING", "EMBEDDING_SERVER_URL", "EMBEDDING_PORT", "EMBEDDING_REPLICAS_DIR", 3 * GIB // 2
)
SERVERS = (JUDGE, EMBEDDING)


@dataclass(frozen=True)
class Choice:
    """Which servers are started.

    Args:
        chosen: they are.
        left_out: by the name of each other one, why.
        warnings: of those that are started though they may not fit.
    """

    chosen: list[ModelServer]
    left_out: dict[str, str]
    warnings: list[str]


def unsupported_reason(server: ModelServer, settings: Settings) -> str:
    """Return why a model server cannot run here as a local process; empty where it can."""
    gpus = settings.number("JUDGE_TENSOR_PARALLEL_SIZE") if kind_of(server.name) == JUDGE.name else 1
    return engine.obstacle(gpus) or environment.unsupported_reason(Models(Path(settings["MODELS_DIR"])))


def choose(
    settings: Settings,
    running: Collection[str],
    servers: Sequence[ModelServer] = SERVERS,
    obstacle: Callable[[ModelServer, Settings], str] = unsupported_reason,
) -> Choice:
    """Return the servers to start.

    Args:
        settings: of the stack.
        running: names of the services that run, and have the memory they need.
        servers: to choose from.
        obstacle: returns why one cannot run here; empty where it can.
    """
    choice, free = Choice([], {}, []), machine.free_memory()
    for server in servers:
        need = 0 if server.name in running else memory(server, settings)
        short = f"needs {need / GIB:.1f} GiB of memory and {free / GIB:.1f} are free" if need > free else ""
        reason = _left_out(server, settings, short, obstacle)
        if server.judges and JUDGE not in (server, *choice.chosen):
            reason = reason or "it is asked at the judge's port, and there is no judge"
        if reason:
            choice.left_out[server.name] = reason
            continue
        if short:
            choice.warnings.append(f"{server.switch}=on: {server.name} {short}")
        choice.chosen.append(server)
        free = max(free - need, 0)
    return choice


def _left_out(
    server: ModelServer, settings: Settings, short: str, obstacle: Callable[[ModelServer, Settings], str]
) -> str:
    """Return why a server is not started; empty where it is."""
    switch = settings[server.switch]
    if switch == "off":
        return f"{server.switch}=off"
    if switch == "on":
        return ""
    if server in discovered(settings):
        return f"{server.folder} names where its replicas are"
    if is_external(server, settings):
        return f"{server.url} names an external one"
    if short:
        return f"it {short}; {server.switch}=on starts it all the same"
    return obstacle(server, settings)


def memory(server: ModelServer, settings: Settings) -> int:
    """Return the bytes that a server takes with all of its replicas."""
    return server.memory * copies(server, settings)


def copies(server: ModelServer, settings: Settings) -> int:
    """Return how many replicas a server has."""
    return settings.number("JUDGE_REPLICAS") if server == JUDGE else server.replicas


def discovered(settings: Settings) -> list[ModelServer]:
    """Return those with replicas on other nodes, which come and go."""
    return [server for server in SERVERS if settings[server.folder]]


def at_gateway(settings: Settings, chosen: Sequence[ModelServer]) -> list[ModelServer]:
    """Return those that the gateway serves: the chosen ones, and those with replicas on other nodes alone."""
    return [*chosen, *(server for server in discovered(settings) if server not in chosen)]


def wanted_ports(settings: Settings, chosen: Sequence[ModelServer]) -> dict[str, tuple[str, int]]:
    """Return address and port of what clients of local processes reach, by the name of the setting."""
    names = [server.port for server in at_gateway(settings, chosen)]
    if settings["RULES"] == "off":
        return ports.published(settings, names)
    return ports.wanted(settings, [*ports.REWARDS, *names])


def judges(chosen: Iterable[ModelServer]) -> list[ModelServer]:
    """Return the judges among these, the default one first."""
    return [server for server in chosen if kind_of(server.name) == JUDGE.name]


def without(chosen: Iterable[ModelServer], lost: str) -> list[ModelServer]:
    """Return these without the one of a name; named judges, which share the default one's port, go with that."""
    return [server for server in chosen if server.name != lost and not server.name.startswith(f"{lost}.")]


def named(chosen: Iterable[ModelServer]) -> dict[str, str]:
    """Return the service that answers to each named judge."""
    return {name: server.name for server in chosen for name in server.judges}


def is_external(server: ModelServer, settings: Settings) -> bool:
    """Return whether its URL names an external server, not the stack's own, which a user's shell may name already."""
    here = {"localhost", "127.0.0.1", "::1", settings["BIND_ADDRESS"], settings["TLS_NAME"], socket.gethostname()}
    urls = [urlsplit(url.strip()) for url in settings[server.url].split(",") if url.strip()]
    return any(url.hostname not in here or url.port != settings.number(server.port) for url in urls)


def urls(settings: Settings, chosen: Sequence[ModelServer]) -> dict[str, str]:
    """Return where clients find the reward server and the model servers, by the client's variable."""
    found = {"REWARD_SERVER_URL": settings.url()} if settings["RULES"] == "on" else {}
    for server in SERVERS:
        if server in at_gateway(settings, chosen):
            found[server.url] = settings.url(server.port)
        elif is_external(server, settings):
            found[server.url] = settings[server.url]
    return found


def install(chosen: Sequence[ModelServer], settings: Settings) -> list[ModelServer]:
    """Make the environment that the chosen servers need.

    Returns:
        Those that can be started: none where it cannot be made and no server is `on`; a line says so.

    Raises:
        StackError: it cannot be made, and a server is `on`.
    """
    if not chosen:
        return []
    try:
        environment.make(Models(Path(settings["MODELS_DIR"])))
    except (StackError, OSError) as error:
        if any(settings[server.switch] == "on" for server in chosen):
            raise
        say(f"no {' and no '.join(server.name for server in chosen)}: {explain_os_error(error)}")
        return []
    return [*chosen]


def prepare() -> None:
    """Make the environment of the model servers, and unpack the small judge, whatever the switches say.

    Raises:
        StackError: it cannot be made.
    """
    models = Models(Path(load(ROOT)["MODELS_DIR"]))
    environment.make(models)
    say(f"{models.venv} is ready, the small judge in {environment.small_judge(models, models.python)}")
