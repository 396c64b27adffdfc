"""Asks this container's reward server whether it can score: `python -m rewardstack_rules.healthcheck`.

Exit status 0 where it can, else 1 with the reason.
"""

from __future__ import annotations

import http.client
import sys

from rewardstack.errors import SettingsError
from rewardstack_rules.settings import Settings

SECONDS = 8.0
"""That it may take to answer."""


def main() -> None:
    """Exits with what is wrong, if anything is."""
    try:
        port = Settings.from_env().port
    except SettingsError as error:
        sys.exit(str(error))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/ready")
        reply = connection.getresponse()
        text = reply.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"/ready: {error}")
    finally:
        connection.close()
    if reply.status != 200:
        sys.exit(f"/ready answers {reply.status}: {text.strip()}")


if __name__ == "__main__":
    main()
