"""Has supervisord start again, for ever, what it has given up: a listener of its events.

supervisord tries a program that dies while it starts again and again, a second later each time, and calls it FATAL in
the end. After a full disk nobody need come to start it. What was stopped on purpose is not FATAL.
"""

from __future__ import annotations

import os
from contextlib import suppress
from xmlrpc.client import Fault

from supervisor import childutils

from services.up.native.events import listen


def main() -> None:
    """Listen until supervisord ends."""
    supervisor = childutils.getRPCInterface(os.environ).supervisor

    def start(given_up: str) -> None:
        names = childutils.get_headers(given_up)
        program = f"{names['groupname']}:{names['processname']}"
        with suppress(Fault):
            # Somebody may have stopped it since.
            if supervisor.getProcessInfo(program)["statename"] == "FATAL":
                supervisor.startProcess(program, False)

    listen(start)


if __name__ == "__main__":
    main()
