"""What containers may take, by the settings of what runs in them."""

from __future__ import annotations

import re

from services.stack.settings import Settings

SIZE = re.compile(r"(\d+)([kmg])b", re.IGNORECASE)
FACTORS = {"k": 2**10, "m": 2**20, "g": 2**30}
STOP_SECONDS = 15
"""That a stopping container has beyond what its requests are given."""


def limits(settings: Settings) -> dict[str, str]:
    """The variables of the compose files that say so.

    Redis takes more than it is told to use; the queue's, which writes its file anew now and then, up to twice as much.
    """
    return {
        "STOP_TIMEOUT": str(settings.number("REWARD_GRACEFUL_TIMEOUT") + STOP_SECONDS),
        "CACHE_MEMORY": str(2 * size(settings["CACHE_MAX_MEMORY"])),
        "QUEUE_MEMORY": str(3 * size(settings["QUEUE_MAX_MEMORY"])),
    }


def size(text: str) -> int:
    """Bytes of a size such as `512mb`, as Redis has it."""
    match = SIZE.fullmatch(text)
    assert match, text  # checked before
    return int(match.group(1)) * FACTORS[match.group(2).lower()]
