"""What `make up` does and why, decided before anything is done: `make plan` prints it, `make up` carries it out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from services.models import machine
from services.models.machine import GIB
from services.stack.console import say

WAYS = {"compose": "containers", "native": "local processes", "apptainer": "Apptainer"}
ROW = "{:<16} {:<14} {:<16} {}"


@dataclass(frozen=True)
class Service:
    """One service of the stack.

    Args:
        name: of it.
        runs: the image or the program, and the model that it serves.
        copies: how many of it.
        memory: that it takes or may take, in words.
    """

    name: str
    runs: str
    copies: int = 1
    memory: str = ""


@dataclass(frozen=True)
class Plan:
    """What `make up` does.

    Args:
        way: that the stack runs, a value of STACK.
        reason: for that way.
        services: that are to run.
        running: names of those that run already.
        ports: address and port by the name of the setting.
        held: ports that what runs already holds.
        left_out: what is not there, and why.
        warnings: of what may not fit this machine.
        carry_out: starts it all, waits until it is well, and scores the shipped samples.
        changes: tells what becomes of a stack that runs, a line each; None where none does, or it cannot be told.
    """

    way: str
    reason: str
    services: Sequence[Service]
    running: Collection[str]
    ports: Mapping[str, tuple[str, int]]
    held: Collection[int]
    left_out: Mapping[str, str]
    warnings: Sequence[str]
    carry_out: Callable[[], None]
    changes: Callable[[], Sequence[str]] | None = None

    def announce(self) -> None:
        """Say which way, what is left out, and what may not fit."""
        say(f"==> {WAYS[self.way]}: {self.reason}")
        for name, reason in self.left_out.items():
            say(f"==> no {name}: {reason}")
        for warning in self.warnings:
            say(f"warning: {warning}")

    def show(self) -> None:
        """Print all of it."""
        self.announce()
        say()
        say(ROW.format("SERVICE", "NOW", "MEMORY", "RUNS"))
        for service in self.services:
            name = service.name if service.copies == 1 else f"{service.name} x{service.copies}"
            now = "runs" if service.name in self.running else "to be started"
            say(ROW.format(name, now, service.memory, service.runs))
        if self.changes is not None:
            unchanged = "nothing is restarted: the services run already, with these settings"
            say("\n" + ("\n".join(self.changes()) or unchanged))
        say("\nports: " + ", ".join(f"{name}={host}:{port}" for name, (host, port) in self.ports.items()))
        say(f"free memory: {in_gib(machine.free_memory())}")


def in_gib(size: int) -> str:
    """Bytes in words."""
    return f"{size / GIB:.1f} GiB"
