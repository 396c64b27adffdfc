"""Check whether this container's reward server can score: `python -m rewardstack_rules.http.healthcheck`.

The exit status is 0 if the server can score, `NOT_READY` if it is alive but not ready, else 1. A failed check prints
the reason.
"""

from __future__ import annotations

import http.client
import sys

from rewardstack.errors import SettingsError
from rewardstack_rules.process import NOT_READY
from rewardstack_rules.settings import Settings

SECONDS = 8.0
"""Timeout of a request, in seconds."""


def main() -> None:
    """Run the check, and exit with its status."""
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
    """Return the problem with a path; empty if it answers 200."""
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
