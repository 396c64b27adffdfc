"""Find the process that listens on a TCP port of this machine, and the command that stops it."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from services.stack.rundir import MARK, ROOT, SUPERVISOR

PROC = Path("/proc")
LISTENING = "0A"
DEBIAN_SERVICES = {"nginx": "nginx", "redis-server": "redis-server", "the user redis": "redis-server"}
"""Services that Debian starts when it installs their packages, by name of the program or user."""


class Listener(NamedTuple):
    """The process that listens on a port.

    Args:
        description: description of the process, such as `redis-server (pid 812)`; if the process cannot be read,
            description of its user.
        service: Debian service that the process probably belongs to; empty for none.
        stop_command: command that stops the stack that the process belongs to; empty for none.
    """

    description: str
    service: str = ""
    stop_command: str = ""


def listener(port: int) -> Listener:
    """Return the process that listens on a port."""
    return owner({name: uid for name, uid, _ in _listening(port)})


def owner(sockets: Mapping[str, str]) -> Listener:
    """Return the process that owns one of these sockets, which are in the format of `accepting_sockets`."""
    for folder in PROC.glob("[0-9]*/fd"):
        with suppress(OSError):  # the process is another user's, or has ended
            if any(name in sockets for name in _list_open_files(folder)):
                return _process(folder.parent)
    users = [_user(uid) for uid in sockets.values()]
    return (
        Listener(f"a process of {users[0]}", DEBIAN_SERVICES.get(users[0], ""))
        if users
        else Listener("an unknown process")
    )


def accepting_sockets(address: str, port: int) -> dict[str, str]:
    """Return the sockets that accept connections to an address of this machine, as a dict from names to user ids.

    As in the kernel, a socket that is bound to this address takes precedence over one that is bound to all addresses.

    Args:
        address: IP address that clients connect to.
        port: port number.
    """
    target = ip_address(address)
    ranks = [str(target), f"::ffff:{target}", "0.0.0.0", "::"] if target.version == 4 else [str(target), "::"]
    sockets = [*_listening(port)]
    best = next((rank for rank in ranks if any(ip_address(rank) == bound for _, _, bound in sockets)), "::")
    return {name: uid for name, uid, bound in sockets if bound == ip_address(best)}


def open_files(pids: Iterable[int]) -> Iterator[str]:
    """Yield the names of the files and sockets that processes have open. Unreadable processes are skipped."""
    for pid in pids:
        with suppress(OSError):
            yield from _list_open_files(PROC / str(pid) / "fd")


def _list_open_files(folder: Path) -> Iterator[str]:
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # the file has just been closed
            yield os.readlink(file)


def _process(folder: Path) -> Listener:
    name = (folder / "comm").read_text().strip()
    description = f"{name} (pid {folder.name})"
    with suppress(OSError):
        leader = PROC / str(os.getsid(int(folder.name)))
        command = (leader / "cmdline").read_text(errors="replace").split("\0")
        if SUPERVISOR in command and (Path(command[-2]).parent / MARK).exists():
            run, tree = Path(command[-2]).parent, Path(os.readlink(leader / "cwd"))
            return Listener(f"{description} of the stack in {run}", stop_command=_stop_command(run, tree))
    return Listener(description, DEBIAN_SERVICES.get(name, ""))


def _stop_command(run: Path, tree: Path) -> str:
    """Return the command that stops the stack of a run directory, independent of the user's RUN_DIR."""
    directory = "" if tree == ROOT else f"-C {tree} "
    return f"RUN_DIR={run} make {directory}down"


def _user(uid: str) -> str:
    try:
        return f"the user {pwd.getpwuid(int(uid)).pw_name}"
    except KeyError:
        return f"user {uid}"


def _listening(port: int) -> Iterator[tuple[str, str, IPv4Address | IPv6Address]]:
    """Yield name, user id and address of each socket that listens on a port."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "self/net" / table).read_text().splitlines()[1:]:
                cells = line.split()
                address, _, number = cells[1].rpartition(":")
                if cells[3] == LISTENING and int(number, 16) == port:
                    yield f"socket:[{cells[9]}]", cells[7], _address(address)


def _address(digits: str) -> IPv4Address | IPv6Address:
    """Parse an address in /proc/net/tcp, which consists of words of four bytes in this machine's byte order."""
    words = [bytes.fromhex(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    return ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in words))
