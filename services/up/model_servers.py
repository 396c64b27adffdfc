"""Choose the model servers that `make up` starts: judges, embedding server and reward model."""

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
from services.stack.settings import RULES_SECRETS, Settings, load
from services.up.services import kind_of


@dataclass(frozen=True)
class ModelServer:
    """A judge, a reward model or an embedding server.

    Args:
        name: name of the service.
        switch: name of the setting that enables or disables the server.
        url_setting: name of the setting with the URL of an external server to use instead.
        port_setting: name of the setting with the gateway's port for the server.
        folder_setting: name of the setting with the folder in which replicas on other nodes register; empty if there is
            no such setting.
        memory: bytes of memory that one replica with a small model needs on a CPU.
        model: model of a named judge (a judge in a routes file); empty if the settings name the model.
        replicas: number of replicas; ignored for the default judge, which uses JUDGE_REPLICAS.
        judges: names of the judges that this server serves, as in the routes files.
    """

    name: str
    switch: str
    url_setting: str
    port_setting: str
    folder_setting: str
    memory: int
    model: str = ""
    replicas: int = 1
    judges: tuple[str, ...] = field(default=(), compare=False)


JUDGE = ModelServer("judge", "JUDGE", "LLM_JUDGE_SERVER_URL", "JUDGE_PORT", "JUDGE_REPLICAS_DIR", 4 * GIB)
EMBEDDING = ModelServer(
    "embedding", "EMBEDDING", "EMBEDDING_SERVER_URL", "EMBEDDING_PORT", "EMBEDDING_REPLICAS_DIR", 3 * GIB // 2
)
SERVERS = (JUDGE, EMBEDDING)
REWARD_MODEL = ModelServer(
    "reward-model", "REWARD_MODEL_ID", "REWARD_MODEL_SERVER_URL", "JUDGE_PORT", folder_setting="", memory=4 * GIB
)
"""Server of the model that REWARD_MODEL_ID names. Clients reach it at the judge's port."""
REWARD_MODEL_PATH = "/reward_models/reward_model"
REWARD_MODEL_KEY, PORT_KEY = "REWARD_MODEL_SERVER_API_KEY", "LLM_JUDGE_SERVER_API_KEY"


@dataclass(frozen=True)
class Choice:
    """Model servers that `make up` starts and leaves out.

    Args:
        chosen: servers to start.
        left_out: reason why a server is not started, by name of the server.
        warnings: warnings about servers that are started although memory is short.
    """

    chosen: list[ModelServer]
    left_out: dict[str, str]
    warnings: list[str]


def unsupported_reason(server: ModelServer, settings: Settings) -> str:
    """Return the reason why a model server cannot run on this machine as a local process; empty if it can."""
    gpus = settings.number("JUDGE_TENSOR_PARALLEL_SIZE") if kind_of(server.name) == JUDGE.name else 1
    return engine.unsupported_reason(gpus) or environment.unsupported_reason(Models(Path(settings["MODELS_DIR"])))


def choose(
    settings: Settings,
    running: Collection[str],
    servers: Sequence[ModelServer] = SERVERS,
    unsupported: Callable[[ModelServer, Settings], str] = unsupported_reason,
) -> Choice:
    """Return the servers to start and to leave out, given the settings and the free memory.

    Args:
        settings: settings of the stack.
        running: names of running services, which need no additional memory.
        servers: servers to choose from.
        unsupported: returns the reason why a server cannot run on this machine; empty if it can.
    """
    choice, free = Choice([], {}, []), machine.free_memory()
    for server in servers:
        need = 0 if server.name in running else memory(server, settings)
        short = f"needs {need / GIB:.1f} GiB of memory and {free / GIB:.1f} are free" if need > free else ""
        reason = _skip_reason(server, settings, short, unsupported)
        if server.judges and JUDGE not in (server, *choice.chosen):
            reason = reason or "clients reach it at the port of the default judge, which is not started"
        if reason:
            choice.left_out[server.name] = reason
            continue
        if short:
            choice.warnings.append(f"{server.switch}={settings[server.switch]}: {server.name} {short}")
        choice.chosen.append(server)
        free = max(free - need, 0)
    return choice


def _skip_reason(
    server: ModelServer, settings: Settings, short: str, unsupported: Callable[[ModelServer, Settings], str]
) -> str:
    """Return the reason why a server is not started; empty if it is started."""
    switch = settings[server.switch]
    if switch == "off":
        return f"{server.switch}=off"
    if is_required(server, settings):
        return ""
    if server in discovered_servers(settings):
        return f"its replicas run on other nodes ({server.folder_setting})"
    if is_external(server, settings):
        return f"{server.url_setting} names an external server, which is used instead"
    if short:
        return f"it {short}; {server.switch}=on starts it anyway"
    return unsupported(server, settings)


def is_required(server: ModelServer, settings: Settings) -> bool:
    """Return whether a server is required: its switch is `on`, or it is the reward model.

    The stack does not start without its required servers.
    """
    return settings[server.switch] == "on" or server == REWARD_MODEL


def served_model(server: ModelServer, settings: Settings, default: str) -> str:
    """Return the model that a judge or the reward model serves; `default` is the model of the default judge."""
    return settings["REWARD_MODEL_ID"] if server == REWARD_MODEL else server.model or default


def memory(server: ModelServer, settings: Settings) -> int:
    """Return the memory that all replicas of a server need, in bytes."""
    return server.memory * replica_count(server, settings)


def replica_count(server: ModelServer, settings: Settings) -> int:
    """Return the number of replicas of a server."""
    return settings.number("JUDGE_REPLICAS") if server == JUDGE else server.replicas


def discovered_servers(settings: Settings) -> list[ModelServer]:
    """Return the servers that may have replicas on other nodes: those whose folder of replicas is set."""
    return [server for server in SERVERS if settings[server.folder_setting]]


def gateway_servers(settings: Settings, chosen: Sequence[ModelServer]) -> list[ModelServer]:
    """Return the servers behind the gateway: the chosen servers, and servers that run only on other nodes."""
    return [*chosen, *(server for server in discovered_servers(settings) if server not in chosen)]


def wanted_ports(settings: Settings, chosen: Sequence[ModelServer]) -> dict[str, tuple[str, int]]:
    """Return the address and number of each client-facing port of a stack of local processes, by setting."""
    names = [server.port_setting for server in gateway_servers(settings, chosen)]
    if settings["RULES"] == "off":
        return ports.addresses(settings, names)
    return ports.native_ports(settings, [*ports.REWARDS, *names])


def judges(chosen: Iterable[ModelServer]) -> list[ModelServer]:
    """Return the judges among these servers. The order is kept, so the default judge is first."""
    return [server for server in chosen if kind_of(server.name) == JUDGE.name]


def exclude(chosen: Iterable[ModelServer], name: str) -> list[ModelServer]:
    """Return the servers except the one with this name.

    Excluding the default judge also excludes the named judges, because clients reach them at the default judge's port.
    """
    return [server for server in chosen if server.name != name and not server.name.startswith(f"{name}.")]


def paths(chosen: Iterable[ModelServer]) -> dict[str, str]:
    """Return the additional paths at the judge's port, such as `/judges/NAME`, each with the service behind it."""
    found = {f"/judges/{name}": server.name for server in chosen for name in server.judges}
    return {**found, **({REWARD_MODEL_PATH: REWARD_MODEL.name} if REWARD_MODEL in chosen else {})}


def is_external(server: ModelServer, settings: Settings) -> bool:
    """Return whether a server's URL setting names a server outside this stack.

    The setting may contain the URL of this stack, because `make up` asks users to export it. Such a URL does not count.
    """
    own_hosts = {"localhost", "127.0.0.1", "::1", settings["BIND_ADDRESS"], settings["TLS_NAME"], socket.gethostname()}
    urls = [urlsplit(url.strip()) for url in settings[server.url_setting].split(",") if url.strip()]
    return any(url.hostname not in own_hosts or url.port != settings.number(server.port_setting) for url in urls)


def urls(settings: Settings, chosen: Sequence[ModelServer]) -> dict[str, str]:
    """Return the URLs of the reward server and the model servers, by client variable, such as REWARD_SERVER_URL."""
    found = {"REWARD_SERVER_URL": settings.url()} if settings["RULES"] == "on" else {}
    for server in SERVERS:
        if server in gateway_servers(settings, chosen):
            found[server.url_setting] = settings.url(server.port_setting)
        elif is_external(server, settings):
            found[server.url_setting] = settings[server.url_setting]
    if REWARD_MODEL in chosen:
        found[REWARD_MODEL.url_setting] = settings.url(REWARD_MODEL.port_setting) + REWARD_MODEL_PATH
    return found


def keys(settings: Settings) -> dict[str, str]:
    """Return the API keys by setting. A reward model that the stack serves has the key of the judge's port."""
    found = {name: settings[name] for name in RULES_SECRETS}
    return found | ({REWARD_MODEL_KEY: settings[PORT_KEY]} if settings[REWARD_MODEL.switch] else {})


def install(chosen: Sequence[ModelServer], settings: Settings) -> list[ModelServer]:
    """Install the Python environment of the model servers, if any server is chosen.

    Returns:
        The chosen servers; an empty list if the installation failed and no server is required (a message is printed).

    Raises:
        StackError: the installation fails, and a server is required.
    """
    if not chosen:
        return []
    try:
        environment.make(Models(Path(settings["MODELS_DIR"])))
    except (StackError, OSError) as error:
        if any(is_required(server, settings) for server in chosen):
            raise
        say(f"no {' and no '.join(server.name for server in chosen)}: {explain_os_error(error)}")
        return []
    return [*chosen]


def prepare() -> None:
    """Install the environment of the model servers and unpack the small judge model, even if the servers are off.

    Raises:
        StackError: the installation fails.
    """
    models = Models(Path(load(ROOT)["MODELS_DIR"]))
    environment.make(models)
    say(f"{models.venv} is ready, the small judge in {environment.unpack_small_judge(models, models.python)}")
