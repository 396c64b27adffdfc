"""Names of services and replicas, and what usually helps when one does not start."""

from __future__ import annotations

import re

ROW = "{:<16} {:<9} {:>8} {:>10}  {}"
"""Service, state, process or container, uptime and health."""
NAME = re.compile(r"(?P<service>(?P<kind>[a-z]+)(\.[a-z0-9_-]+)?)([-.]\d+)?")
"""Such as `worker`, `judge-2` (the second replica), `judge.small` (a judge of that name) or `judge.small.2`."""
LOG_LINES = 100
"""Of each service, that `make logs` begins with."""
LOADING = ("judge", "embedding")
"""The services that load a model first."""

FUNCTIONS = "the log says what is wrong with REWARD_FUNCTIONS or another setting of the reward server"
REMEDIES = {
    "cache": "check that CACHE_PORT is free and CACHE_MAX_MEMORY fits this machine",
    "queue": "check that QUEUE_PORT is free and that the disk of RUN_DIR has room",
    "rules": FUNCTIONS,
    "worker": FUNCTIONS,
    "judge": "the log says what is wrong with the model or the memory; JUDGE=off leaves the judge out",
    "embedding": "the log says what is wrong with the model or the memory; EMBEDDING=off leaves it out",
    "gateway": "check that its ports are free and BIND_ADDRESS is an address of this machine",
}
NO_PROCESS = ("Resource temporarily unavailable", "can't start new thread")
"""Logged when the system refuses a process or a thread."""
TAKEN = "is taken by"
"""In what is reported about a port that another process has bound."""


def remedy(service: str, cause: str) -> str:
    """Return what usually helps when a service does not start.

    Args:
        service: its name, or that of a replica.
        cause: the first error in its log.
    """
    if any(sign in cause for sign in NO_PROCESS):
        return "allow more processes and threads (ulimit -u; of a container docker run --pids-limit)"
    if TAKEN in cause:
        return "end that process, or give the stack another port"
    return REMEDIES.get(kind_of(service), f"make logs s={service}")


def kind_of(name: str) -> str:
    """Return what a service or a replica is, such as `judge`; named judges are judges, too."""
    return match["kind"] if (match := NAME.fullmatch(name)) else name


def service_of(name: str) -> str:
    """Return the name of a replica without its number."""
    return match["service"] if (match := NAME.fullmatch(name)) else name
