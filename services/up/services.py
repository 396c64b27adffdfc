"""Names of services and replicas, and remedies for services that do not start."""

from __future__ import annotations

import re

ROW = "{:<16} {:<9} {:>8} {:>10}  {}"
"""Format of a row of `make status`: service, state, process id, uptime and health."""
NAME = re.compile(r"(?P<service>(?P<kind>[a-z]+)(\.[a-z0-9_-]+)?)([-.]\d+)?")
"""Matches names: `worker`, `judge-2` (second replica), `judge.small` (the judge named small), `judge.small.2`
(its second replica)."""
LOG_LINES = 100
"""Number of last lines of each log that `make logs` prints."""
LOADING = ("judge", "reward-model", "embedding")
"""Services that load a model at startup."""

FUNCTIONS = "the log says what is wrong with REWARD_FUNCTIONS or another setting of the reward server"
REMEDIES = {
    "cache": "check that CACHE_PORT is free and CACHE_MAX_MEMORY fits this machine",
    "queue": "check that QUEUE_PORT is free and that the disk of RUN_DIR has room",
    "rules": FUNCTIONS,
    "worker": FUNCTIONS,
    "judge": "the log says what is wrong with the model or the memory; JUDGE=off leaves the judge out",
    "embedding": "the log says what is wrong with the model or the memory; EMBEDDING=off leaves it out",
    "reward-model": "the log says what is wrong with the model or the memory; REWARD_MODEL_ID= leaves it out",
    "gateway": "check that its ports are free and BIND_ADDRESS is an address of this machine",
}
NO_PROCESS = ("Resource temporarily unavailable", "can't start new thread")
"""Messages of programs that cannot create a process or thread."""
TAKEN = "is taken by"
"""Part of the message about a port that another process has bound."""


def remedy(service: str, cause: str) -> str:
    """Return the usual remedy for a service that does not start.

    Args:
        service: name of the service or replica.
        cause: first error in the service's log, or another description of the problem.
    """
    if any(sign in cause for sign in NO_PROCESS):
        return "allow more processes and threads (ulimit -u; for a container: docker run --pids-limit)"
    if TAKEN in cause:
        return "end that process, or give the stack another port"
    return REMEDIES.get(kind_of(service), f"make logs s={service}")


def kind_of(name: str) -> str:
    """Return the kind of a service or replica: its name in the table of services. It is `judge` for `judge.small.2`."""
    return match["kind"] if (match := NAME.fullmatch(name)) else name


def service_of(name: str) -> str:
    """Return the service of a replica: its name without the number. It is `judge.small` for `judge.small.2`."""
    return match["service"] if (match := NAME.fullmatch(name)) else name
