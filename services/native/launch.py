"""Starts one service in place of this process: `python -m services.native.launch NAME COMMAND...`.

A main process that is killed can leave children that hold its port (nginx's workers do), so whatever is left of the
service's last process group is ended first. The service is given its own settings only, as a container would be.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from services.native import processes
from services.native.rundir import RunDir
from services.native.settings import GIVEN_TO

FROM_THE_SYSTEM = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")


def environment(service: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a service is given, of all that its supervisor was."""
    names = (*FROM_THE_SYSTEM, *GIVEN_TO.get(service, ()))
    return {name: environ[name] for name in names if name in environ}


def end_last_group(service: str, run: RunDir) -> None:
    """End what is left of the service's last process group, then put this process's group in its place."""
    record = run.path / f"{service}.group"
    session = os.getsid(0)
    if record.exists():
        last = int(record.read_text())
        for process in processes.processes():
            # Only supervisord's own session: elsewhere the same number is another group.
            if process.group == last and process.session == session and process.pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
    record.write_text(str(os.getpgrp()))


def main(service: str, command: list[str]) -> None:
    """Become the service."""
    end_last_group(service, RunDir(os.environ["RUN_DIR"]))
    os.execve(command[0], command, environment(service, os.environ))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
