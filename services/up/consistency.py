"""Settings that are each well-formed and contradict one another."""

from __future__ import annotations

import re

from services.stack.console import say
from services.stack.errors import StackError
from services.stack.settings import Settings
from services.up.model_servers import SERVERS, elsewhere

SIZE = re.compile(r"(\d+)([kmg]?)b?", re.IGNORECASE)
FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
HOLDS = {"CACHE_MEMORY": "CACHE_MAX_MEMORY", "QUEUE_MEMORY": "QUEUE_MAX_MEMORY"}
"""The memory that a container of Redis may take, and what Redis is told to use of it."""


def require(settings: Settings) -> None:
    """Check what does not depend on the way that the stack runs.

    Raises:
        StackError: two settings contradict each other; names both.
    """
    for server in SERVERS:
        if settings[server.switch] == "on" and elsewhere(server, settings):
            raise StackError(
                f"{server.switch}=on starts a server here, and {server.url} names one elsewhere",
                f"unset {server.url}, or {server.switch}=off",
            )
    if settings["STACK"] == "native" and settings["MONITORING"] == "on":
        raise StackError("MONITORING=on takes containers, and STACK=native has none", "choose one of the two")


def require_for(way: str, settings: Settings) -> None:
    """Check what holds for one way, and say what is left out because of it.

    Args:
        way: that the stack runs, `compose` or `native`.
        settings: of the stack.

    Raises:
        StackError: two settings contradict each other; names both.
    """
    if way == "native":
        if settings["MONITORING"] == "on":
            say("==> no monitoring: Prometheus and Grafana run in containers only")
        return
    if settings.number("STOP_TIMEOUT") <= settings.number("REWARD_GRACEFUL_TIMEOUT"):
        raise StackError(
            "STOP_TIMEOUT does not exceed REWARD_GRACEFUL_TIMEOUT: requests under way would be cut off",
            f"STOP_TIMEOUT={settings.number('REWARD_GRACEFUL_TIMEOUT') + 15}",
        )
    for bound, used in HOLDS.items():
        if 0 < size(settings[bound]) <= size(settings[used]):
            raise StackError(
                f"{bound}={settings[bound]} does not exceed {used}={settings[used]}",
                f"a larger {bound}, or 0 for no bound",
            )


def size(text: str) -> int:
    """Bytes of a size such as `512mb` or `2g`."""
    match = SIZE.fullmatch(text)
    assert match, text  # checked before
    return int(match.group(1)) * FACTORS[match.group(2).lower()]
