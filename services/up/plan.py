"""The plan of `make up`. `make plan` prints it, `make up` applies it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from services.models import machine
from services.models.machine import GIB
from services.stack import helm_values
from services.stack.console import say
from services.stack.rundir import ROOT
from services.stack.settings import Settings, read_local

NAMES = {"compose": "containers", "native": "local processes", "apptainer": "Apptainer"}
"""Display names of the deployments, by value of STACK."""
ROW = "{:<16} {:<14} {:<16} {}"


@dataclass(frozen=True)
class Service:
    """A service in the plan.

    Args:
        name: name of the service.
        runs: image or program, and the model if the service has one, as text.
        copies: number of replicas.
        memory: memory that the service needs, or its limit, as text.
    """

    name: str
    runs: str
    copies: int = 1
    memory: str = ""


@dataclass(frozen=True)
class RunningStack:
    """A running stack, for the final check and the summary of `make up`.

    Args:
        settings: settings of the stack.
        services: names of the running services.
        addresses: environment variables for the client that scores the bundled samples, such as the URLs of the servers
            and of the cache.
        judge_model: model of the default judge; empty without a judge.
        summarize: prints how to reach the stack.
    """

    settings: Settings
    services: Collection[str]
    addresses: Mapping[str, str]
    judge_model: str
    summarize: Callable[[], None]


@dataclass(frozen=True)
class Plan:
    """The plan of `make up`.

    Args:
        backend: deployment, as a value of STACK.
        reason: why this deployment is used.
        services: services to run.
        running: names of the services that already run.
        ports: address and number of each client-facing port, by setting.
        held: ports that the running services have bound, which therefore need not be free.
        left_out: reason why something is left out, by name: a service, `monitoring` or `GPU`.
        warnings: warnings to print, for example about memory.
        apply: starts the stack and waits until it is healthy.
        changes: a function that returns a line for each change to the running stack. It is None if no stack runs, or if
            the changes cannot be determined.
    """

    backend: str
    reason: str
    services: Sequence[Service]
    running: Collection[str]
    ports: Mapping[str, tuple[str, int]]
    held: Collection[int]
    left_out: Mapping[str, str]
    warnings: Sequence[str]
    apply: Callable[[], RunningStack]
    changes: Callable[[], Sequence[str]] | None = None

    def announce(self) -> None:
        """Print the deployment, what is left out, and the warnings."""
        say(f"deployment: {NAMES[self.backend]} ({self.reason})")
        for name, reason in self.left_out.items():
            say(f"no {name}: {reason}")
        for warning in self.warnings:
            say(f"warning: {warning}")

    def show(self) -> None:
        """Print the whole plan."""
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
        if values := helm_values.to_values(read_local(ROOT)):
            say(f"\n.env.local as values for helm/rewardstack:\n\n{values}", whole=True)


def in_gib(size: int) -> str:
    """Return a number of bytes as text in GiB."""
    return f"{size / GIB:.1f} GiB"
