"""What is said of the services whichever way they run: the row of `make status`, and what helps a sick one."""

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

REMEDIES = {
    "cache": "see that CACHE_PORT is free and CACHE_MAX_MEMORY fits this machine",
    "queue": "see that QUEUE_PORT is free and that the disk of RUN_DIR has room",
    "rules": "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server",
    "worker": "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server",
    "judge": "see what the log says of the model and of memory; JUDGE=off leaves the judge out",
    "embedding": "see what the log says of the model and of memory; EMBEDDING=off leaves it out",
    "gateway": "see that its ports are free and BIND_ADDRESS is an address of this machine",
}
"""What usually helps where a service does not come up."""
NO_PROCESS = ("Resource temporarily unavailable", "can't start new thread")
"""What is said of a process or a thread that the system does not grant."""
TAKEN = "is taken by"
"""What is said of a port that somebody else has bound since it was chosen."""


def remedy(service: str, cause: str) -> str:
    """What helps a service that does not come up.

    Args:
        service: its name, or that of a replica.
        cause: the first error that it told.
    """
    if any(sign in cause for sign in NO_PROCESS):
        return "allow more processes and threads (ulimit -u; of a container docker run --pids-limit)"
    if TAKEN in cause:
        return "end that process, or give the stack another port"
    return REMEDIES.get(kind_of(service), f"make logs s={service}")


def kind_of(name: str) -> str:
    """What a service or a replica is, such as `judge`: named judges are of one kind with the default one."""
    return _part(name, "kind")


def service_of(name: str) -> str:
    """The name of a replica without its number."""
    return _part(name, "service")


def _part(name: str, part: str) -> str:
    match = NAME.fullmatch(name)
    return match[part] if match else name
