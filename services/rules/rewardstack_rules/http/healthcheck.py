"""Asks this container's reward server whether it can score: `python -m rewardstack_rules.http.healthcheck`.

Exit status 0 where it can, else a reason, and `NOT_READY` where it lives all the same, as one that is busy does.
"""

from __future__ import annotations

import http.client
import sys

from rewardstack.errors import SettingsError
from rewardstack_rules.process import NOT_READY
from rewardstack_rules.settings import Settings

SECONDS = 8.0
"""That it may take to answer."""


def main() -> None:
    """Exits with what is wrong, if anything is."""
    try:
        port = Settings.from_env().port
    except SettingsError as error:
        sys.exit(str(error))
    if problem := _ask(port, "/health"):
        sys.exit(problem)
    if problem := _ask(port, "/ready"):
        print(problem, file=sys.stderr)
        sys.exit(NOT_READY)


def _ask(port: int, path: str) -> str:
    """What is wrong with the answer to a path; empty where it is 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        text = reply.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"{path}: {error}"
    finally:
        connection.close()
    return "" if reply.status == 200 else f"{path} answers {reply.status}: {text.strip()}"


if __name__ == "__main__":
    main()
