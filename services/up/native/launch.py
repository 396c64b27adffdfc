"""Starts one service in place of this process: `python -m services.up.native.launch NAME COMMAND...`.

A main process that is killed can leave children that hold its port (nginx's workers do), so whatever is left of the
service's last process group is ended first. The service is given its own settings only, as a container would be; its
PATH begins with what is installed beside its own program.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from services.stack import processes
from services.stack.given import environment
from services.stack.rundir import RunDir


def end_last_group(service: str, run: RunDir) -> None:
    """End what is left of the service's last process group, then put this process's group in its place."""
    session = os.getsid(0)
    if (last := run.process_group(service)) is not None:
        for process in processes.processes():
            # Only supervisord's own session: elsewhere the same number is another group.
            if process.group == last and process.session == session and process.pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
    run.group_file(service).write_text(str(os.getpgrp()))


def main(service: str, command: list[str]) -> None:
    """Become the service."""
    run = RunDir(os.environ["RUN_DIR"])
    end_last_group(service, run)
    # vLLM does not listen where a socket is left.
    run.socket(service).unlink(missing_ok=True)
    given = environment(service, os.environ)
    given["PATH"] = os.pathsep.join([os.path.dirname(command[0]), given.get("PATH", os.defpath)])
    os.execve(command[0], command, given)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
