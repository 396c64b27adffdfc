"""Whether the ports of the stack are free, and who holds the one that is not."""

from __future__ import annotations

import errno
import socket

from services.native import processes
from services.native.errors import StackError
from services.native.rundir import Running
from services.native.settings import Settings

LOOPBACK = "127.0.0.1"


def wanted(settings: Settings) -> dict[str, tuple[str, int]]:
    """Address and port by the name of the setting."""
    return {
        "REWARD_PORT": (settings["BIND_ADDRESS"], settings.number("REWARD_PORT")),
        "CACHE_PORT": (LOOPBACK, settings.number("CACHE_PORT")),
    }


def require_free(settings: Settings, running: Running | None) -> None:
    """Check every port that the stack itself does not hold already.

    Raises:
        StackError: a port is taken, two settings name one port, or an address is not this machine's.
    """
    ports = wanted(settings)
    if ports["REWARD_PORT"][1] == ports["CACHE_PORT"][1]:
        raise StackError(f"REWARD_PORT and CACHE_PORT are both {settings['CACHE_PORT']}", "give each its own")
    held = running.ports.values() if running else ()
    for name, (address, port) in ports.items():
        if port not in held:
            _require_free(name, address, port)


def _require_free(name: str, address: str, port: int) -> None:
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
            f"{name}: port {port} is taken by {processes.listener(port)}",
            f"stop that process, or choose another port: {name}={port + 1000 if port < 60_000 else 7000} make up",
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return StackError(f"BIND_ADDRESS: {address} is no address of this machine", "use 127.0.0.1 or 0.0.0.0")
    return StackError(f"{name}: port {port} cannot be used: {error.strerror}", "ports below 1024 need root")
