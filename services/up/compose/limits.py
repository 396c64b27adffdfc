"""What containers may take, by the settings of what runs in them."""

from __future__ import annotations

from services.stack.services_table import SERVICES
from services.stack.settings import Settings


def limits(settings: Settings) -> dict[str, str]:
    """The variables of the compose files that say so.

    Redis takes more than it is told to use; the queue's, which writes its file anew now and then, up to twice as much.
    """
    return {
        f"{name.upper()}_MEMORY": str(memory.bytes(settings))
        for name in ("cache", "queue")
        if (memory := SERVICES[name].memory)
    }
