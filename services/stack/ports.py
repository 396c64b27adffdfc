"""Whether the ports of the stack are free, and who holds the one that is not."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from services.stack.errors import StackError
from services.stack.settings import Settings

LOOPBACK = "127.0.0.1"
EMBEDDING_BACKEND = "EMBEDDING_BACKEND_PORT"
"""Under which the embedding server's own port is kept beside the gateway's; no setting."""


def published(settings: Settings, names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Address and port by the name of the setting, of ports that clients use."""
    return {name: (settings["BIND_ADDRESS"], settings.number(name)) for name in names}


def wanted(settings: Settings, gateway: Sequence[str] = ("REWARD_PORT",)) -> dict[str, tuple[str, int]]:
    """Address and port by the name of the setting, where the services are local processes.

    Args:
        settings: of the stack.
        gateway: the settings of the ports that the gateway listens on.
    """
    return published(settings, [*gateway, *(name for name in ("CACHE_PORT", "QUEUE_PORT") if settings[name])])


def require_free(ports: Mapping[str, tuple[str, int]], held: Collection[int] = ()) -> None:
    """Check every port that the stack itself does not hold already.

    Args:
        ports: address and port by the name of the setting.
        held: ports of what runs already.

    Raises:
        StackError: a port is taken, two settings name one port, or an address is not this machine's.
    """
    for one, other in combinations(ports, 2):
        if ports[one][1] == ports[other][1]:
            raise StackError(f"{one} and {other} are both {ports[one][1]}", "give each its own")
    for name, (address, port) in ports.items():
        if port not in held:
            require_one_free(name, address, port)


def free() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def require_one_free(name: str, address: str, port: int) -> None:
    """Check one port.

    Args:
        name: of the variable or flag that names it.
        address: to listen on.
        port: to listen on.

    Raises:
        StackError: it is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            raise _refused(name, address, port, error) from None


def _refused(name: str, address: str, port: int, error: OSError) -> StackError:
    if error.errno == errno.EADDRINUSE:
        return StackError(
            f"{name}: port {port} is taken by {_holder(port)}",
            f"stop that process, or choose another port: {name}={port + 1000 if port < 60_000 else 7000} make up",
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return StackError(f"BIND_ADDRESS: {address} is no address of this machine", "use 127.0.0.1 or 0.0.0.0")
    return StackError(f"{name}: port {port} cannot be used: {error.strerror}", "ports below 1024 need root")


def _holder(port: int) -> str:
    try:
        # Scripts that run without .venv check ports too.
        from services.stack import processes
    except ImportError:
        return "another process"
    return processes.listener(port)
