"""What `make up` does and why, decided before anything is done: `make plan` prints it, `make up` applies it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from services.models import machine
from services.models.machine import GIB
from services.stack import helm_values
from services.stack.console import say
from services.stack.rundir import ROOT
from services.stack.settings import Settings, local

NAMES = {"compose": "containers", "native": "local processes", "apptainer": "Apptainer"}
"""The deployments in words, by the value of STACK."""
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
class Started:
    """A running stack, as the check and the summary of `make up` need it.

    Args:
        settings: of the stack.
        services: names of what runs.
        addresses: of servers and cache, by the client's variable, for the bundled samples.
        judge_model: that the judge serves; empty where there is none.
        summarize: prints how to reach it.
    """

    settings: Settings
    services: Collection[str]
    addresses: Mapping[str, str]
    judge_model: str
    summarize: Callable[[], None]


@dataclass(frozen=True)
class Plan:
    """What `make up` does.

    Args:
        backend: the deployment, a value of STACK.
        reason: for that one.
        services: that are to run.
        running: names of those that run already.
        ports: address and port by the name of the setting.
        held: ports of what runs already.
        left_out: what is left out, and why.
        warnings: what may not fit this machine.
        apply: starts it all and waits until it is healthy.
        changes: returns what becomes of a running stack, a line each; None where none runs, or it cannot be told.
    """

    backend: str
    reason: str
    services: Sequence[Service]
    running: Collection[str]
    ports: Mapping[str, tuple[str, int]]
    held: Collection[int]
    left_out: Mapping[str, str]
    warnings: Sequence[str]
    apply: Callable[[], Started]
    changes: Callable[[], Sequence[str]] | None = None

    def announce(self) -> None:
        """Print the deployment, what is left out, and what may not fit."""
        say(f"deployment: {NAMES[self.backend]} ({self.reason})")
        for name, reason in self.left_out.items():
            say(f"no {name}: {reason}")
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
            say("\n" + ("\n".join(self.changes()) or "nothing is restarted: the services run with these settings"))
        say("\nports: " + ", ".join(f"{name}={host}:{port}" for name, (host, port) in self.ports.items()))
        say(f"free memory: {in_gib(machine.free_memory())}")
        if values := helm_values.of(local(ROOT)):
            say(f"\n.env.local as values for helm/rewardstack:\n\n{values}", whole=True)


def in_gib(size: int) -> str:
    """Return bytes in words."""
    return f"{size / GIB:.1f} GiB"
