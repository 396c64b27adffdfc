"""The programs that supervisord keeps up, and how each is written into its configuration."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.stack.template import fill

TEMPLATE = ROOT / "services/up/native/templates/program.conf"
LAUNCH = (sys.executable, "-m", "services.up.native.launch")
GUNICORN = (sys.executable, "-m", "gunicorn", "--config", "python:rewardstack_rules.gunicorn_conf")
WORKER = (sys.executable, "-m", "rewardstack_rules.jobs.worker")
DRAIN_SECONDS = 5
CHUNK_SECONDS = 60
"""That a stopping worker is given for its chunk; one that is cut off is scored by another worker."""


@dataclass(frozen=True)
class Program:
    """One process that is kept up.

    Args:
        name: of the service; a second replica's has a number behind it, such as `judge-2`.
        command: that starts it.
        priority: those with lower ones start first and stop last.
        server: where it listens, as nginx writes it; empty where the gateway has nothing to do with it.
        start_seconds: that it must live to count as started.
        stop_seconds: that it is given to stop.
        stop_signal: that asks it to.
        environment: variables of this program alone; no secrets, for they are written into a file.
    """

    name: str
    command: Sequence[str]
    priority: int
    server: str = ""
    start_seconds: int = 1
    stop_seconds: int = 10
    stop_signal: str = "TERM"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def service(self) -> str:
        """The name without the number of a replica."""
        return self.name.partition("-")[0]

    def section(self, run: RunDir) -> str:
        """Its part of supervisord.conf."""
        values = {
            "NAME": self.name,
            # supervisord reads % as the beginning of a variable of its own.
            "COMMAND": shlex.join([*LAUNCH, self.name, *self.command]).replace("%", "%%"),
            "ENVIRONMENT": ",".join(f'{name}="{value}"'.replace("%", "%%") for name, value in self.environment.items()),
            "PRIORITY": str(self.priority),
            "START_SECONDS": str(self.start_seconds),
            "STOP_SECONDS": str(self.stop_seconds),
            "STOP_SIGNAL": self.stop_signal,
            "RUN_DIR": str(run.path),
        }
        return fill(TEMPLATE, values)


def redis(service: str, redis_server: str, run: RunDir) -> Program:
    """The Redis of the cache or of the queue."""
    return Program(service, [redis_server, str(run.path / f"{service}.conf")], priority=10)


def rules(settings: Settings, run: RunDir) -> Program:
    """The reward server."""
    return Program(
        "rules",
        GUNICORN,
        priority=20,
        server=f"unix:{run.socket('rules')}",
        start_seconds=2,
        stop_seconds=settings.number("REWARD_GRACEFUL_TIMEOUT") + DRAIN_SECONDS,
    )


def workers(settings: Settings) -> list[Program]:
    """The workers of jobs."""
    names = ["worker", *(f"worker-{number}" for number in range(2, settings.number("WORKERS") + 1))]
    return [Program(name, WORKER, priority=25, start_seconds=2, stop_seconds=CHUNK_SECONDS) for name in names]


def gateway(command: Sequence[str]) -> Program:
    """nginx."""
    return Program("gateway", command, priority=30, stop_signal="QUIT")
