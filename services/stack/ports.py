"""Check that ports are free, suggest free ports, and find the processes that hold ports."""

from __future__ import annotations

import errno
import os
import pwd
import shlex
import socket
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from rewardstack_settings.setting import SERVICE_LINK
from services.stack import processes
from services.stack.errors import COMMAND, StackError
from services.stack.processes import Process
from services.stack.rundir import MARK, ROOT, SUPERVISOR
from services.stack.settings import SECRETS, SETTINGS, Settings

LOOPBACK = "127.0.0.1"
GATEWAY = {"rules": "REWARD_PORT", "page": "PAGE_PORT", "judge": "JUDGE_PORT", "embedding": "EMBEDDING_PORT"}
"""Setting with the gateway's port for each service."""
REWARDS = ("REWARD_PORT", "PAGE_PORT")
"""Settings with the ports of the reward server, for rewards and the status page."""
EMBEDDING_BACKEND = "EMBEDDING_BACKEND_PORT"
"""Key of the embedding server's internal port in `Running.ports`. It is not a setting."""
MONITORING = ("PROMETHEUS_PORT", "GRAFANA_PORT")
NO_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""Errors for an address that this machine does not have, or for an IPv6 address on a machine without IPv6."""
STEP = 1000
HIGHEST = 65_535
LISTENING = "0A"
DEBIAN_SERVICES = {"nginx": "nginx", "redis-server": "redis-server", "the user redis": "redis-server"}
"""Services that Debian starts when it installs their packages, by name of the program or user."""


class Listener(NamedTuple):
    """The process that listens on a port.

    Args:
        description: description of the process, such as `redis-server (pid 812)`; if the process cannot be read,
            description of its user.
        service: Debian service that the process probably belongs to; empty for none.
        stop_command: command that stops the process's stack; empty if the process belongs to no stack.
    """

    description: str
    service: str = ""
    stop_command: str = ""


def addresses(settings: Settings, names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return BIND_ADDRESS and the port number for each of these settings, by the name of the setting."""
    return {name: (settings["BIND_ADDRESS"], settings.number(name)) for name in names}


def native_ports(settings: Settings, gateway: Sequence[str] = REWARDS) -> dict[str, tuple[str, int]]:
    """Return the address and number of each port of a stack of local processes, by setting.

    Args:
        settings: settings of the stack.
        gateway: names of the settings with the ports of the gateway.
    """
    return addresses(settings, [*gateway, *(name for name in ("CACHE_PORT", "QUEUE_PORT") if settings[name])])


def compose_ports(settings: Settings) -> dict[str, tuple[str, int]]:
    """Return the address and number of each port that a stack of containers publishes, by setting."""
    names = [*GATEWAY.values()]
    if settings["CACHE_PORT"] and settings["CACHE_PASSWORD"]:
        names.append("CACHE_PORT")
    monitoring = MONITORING if settings["MONITORING"] == "on" else ()
    return {**addresses(settings, names), **{name: (LOOPBACK, settings.number(name)) for name in monitoring}}


def require_free(ports: Mapping[str, tuple[str, int]], held: Collection[int] = ()) -> None:
    """Check that every port is free, except those that the running stack holds.

    Args:
        ports: address and port by setting.
        held: ports of the running stack.

    Raises:
        StackError: ports are taken, two settings name the same port, an address does not belong to this machine, or a
            port requires root. The message names all ports that are taken or named twice, and has a command that starts
            the stack on free ports.
    """
    problems, owners, others = list[str](), list[Listener](), dict[str, int]()
    for name, (address, port) in ports.items():
        duplicate = next((other for other, (_, number) in ports.items() if number == port), name)
        if duplicate != name:
            problems.append(f"{duplicate} and {name} are both {port}")
        elif holder := port_owner(name, address, 0 if port in held else port):
            owners.append(holder)
            problems.append(f"{name}: port {port} is taken by {holder.description}")
        else:
            continue
        used = {*others.values(), *(number for _, number in ports.values())}
        others[name] = _alternative(address, port, used)
    if problems:
        remedy = f"{_stop(owners)}choose other ports:{COMMAND}{_make_up_command(others)}"
        raise StackError("\n  ".join(problems), remedy)


def _make_up_command(others: Mapping[str, int]) -> str:
    """Return a `make up` command that sets other ports.

    The command also repeats every setting that is set as an environment variable, with `...` in place of a secret.
    """
    values = {name: os.environ.get(name, "") for name in (*SETTINGS, "COMPOSE_PROJECT_NAME")}
    values = {name: value for name, value in values.items() if value and not value.startswith(SERVICE_LINK)}
    values |= {name: str(port) for name, port in others.items()}
    words = (f"{name}={'...' if name in SECRETS else shlex.quote(value)}" for name, value in values.items())
    return " ".join([*words, "make up"])


def own_address() -> str:
    """Return the address at which other machines reach this machine; its host name if there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1; connecting a UDP socket only selects the route
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])


def find_free(address: str = LOOPBACK) -> int:
    """Return a free port on an address of this machine."""
    with socket.socket(_family(address)) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def require_one_free(name: str, address: str, port: int) -> None:
    """Check that a port is free.

    Args:
        name: variable or flag with the port, for the message.
        address: address to listen on.
        port: port to listen on.

    Raises:
        StackError: the port is taken or requires root, or the address does not belong to this machine.
    """
    if holder := port_owner(name, address, port):
        stop, free = _stop([holder]) or "stop that process, or ", _alternative(address, port, ())
        problem = f"{name}: port {port} is taken by {holder.description}"
        raise StackError(problem, f"{stop}choose another port for {name}: {free} is free")


def port_owner(name: str, address: str, port: int) -> Listener | None:
    """Return the process that listens on a port; None if the port is free.

    Args:
        name: setting with the port, for the message.
        address: address of this machine.
        port: port number.

    Raises:
        StackError: the port cannot be used: the address does not belong to this machine, or the port requires root.
    """
    error = _refusal(address, port)
    if error is None:
        return None
    if error.errno == errno.EADDRINUSE:
        return listener(port)
    if error.errno in NO_ADDRESS:
        raise StackError(f"BIND_ADDRESS: {address} is not an address of this machine", "use 127.0.0.1 or 0.0.0.0")
    raise StackError(f"{name}: port {port} cannot be used: {error.strerror}", "ports below 1024 need root")


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _refusal(address: str, port: int) -> OSError | None:
    """Try to listen on a port, and return the error; None if there is no error."""
    try:
        with socket.socket(_family(address)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            probe.listen(1)
    except OSError as error:
        return error
    return None


def _alternative(address: str, port: int, used: Collection[int]) -> int:
    """Return a free alternative to a port.

    It is the lowest free port that is at least `port` + 1000, or at least 7000 if `port` + 1000 is not a valid port. If
    there is none, it is any free port.
    """
    candidates = range(port + STEP if port + STEP <= HIGHEST else 7000, HIGHEST + 1)
    free = (candidate for candidate in candidates if candidate not in used and not _refusal(address, candidate))
    return next(free, 0) or find_free()


def _stop(owners: Sequence[Listener]) -> str:
    """Return the part of a remedy that says how to stop the owners of ports.

    Only other stacks and Debian's services are included. If no owner is one of these, the text is empty.
    """
    downs = sorted({owner.stop_command for owner in owners if owner.stop_command})
    started = sorted({owner.service for owner in owners if owner.service})
    remedies = [f"stop that stack:{COMMAND}{COMMAND.join(downs)}\n    or "] if downs else []
    remedies += [f"stop Debian's own services: systemctl disable --now {' '.join(started)}; or "] if started else []
    return "".join(remedies)


def listener(port: int) -> Listener:
    """Return the process that listens on a port."""
    return owner({name: uid for name, uid, _ in _listening(port)})


def owner(sockets: Mapping[str, str]) -> Listener:
    """Return the process that owns one of these sockets.

    Args:
        sockets: user ids by name of the socket, as `accepting_sockets` returns them.
    """
    for process in processes.all_processes():
        if any(name in sockets for name in process.open_files):
            return _describe(process)
    user = next(map(_user, sockets.values()), "")
    return Listener(f"a process of {user}", DEBIAN_SERVICES.get(user, "")) if user else Listener("an unknown process")


def accepting_sockets(address: str, port: int) -> dict[str, str]:
    """Return the sockets that accept connections to an address of this machine, as a dict from names to user ids.

    Sockets that are bound to all addresses are returned only if none is bound to this address, because the kernel
    prefers a socket that is bound to the exact address.

    Args:
        address: IP address that clients connect to.
        port: port number.
    """
    target = ip_address(address)
    ranks = [str(target), f"::ffff:{target}", "0.0.0.0", "::"] if target.version == 4 else [str(target), "::"]
    sockets = [*_listening(port)]
    best = next((rank for rank in ranks if any(ip_address(rank) == bound for _, _, bound in sockets)), "::")
    return {name: uid for name, uid, bound in sockets if bound == ip_address(best)}


def _describe(process: Process) -> Listener:
    description = f"{process.name} (pid {process.pid})"
    leader = processes.find(process.session)
    command, tree = (leader.command, leader.directory) if leader else ([], None)
    with suppress(OSError):
        if tree and SUPERVISOR in command and ((run := Path(command[-1]).parent) / MARK).exists():
            directory = "" if tree == ROOT else f"-C {tree} "
            return Listener(f"{description} of the stack in {run}", stop_command=f"RUN_DIR={run} make {directory}down")
    return Listener(description, DEBIAN_SERVICES.get(process.name, ""))


def _user(uid: str) -> str:
    try:
        return f"the user {pwd.getpwuid(int(uid)).pw_name}"
    except KeyError:
        return f"user {uid}"


def _listening(port: int) -> Iterator[tuple[str, str, IPv4Address | IPv6Address]]:
    """Yield name, user id and address of each socket that listens on a port."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (processes.PROC / "self/net" / table).read_text().splitlines()[1:]:
                cells = line.split()
                address, _, number = cells[1].rpartition(":")
                if cells[3] == LISTENING and int(number, 16) == port:
                    yield f"socket:[{cells[9]}]", cells[7], _address(address)


def _address(digits: str) -> IPv4Address | IPv6Address:
    """Parse an address in /proc/net/tcp, which consists of words of four bytes in this machine's byte order."""
    words = [bytes.fromhex(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    return ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in words))
