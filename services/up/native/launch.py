"""Replace this process with a service: `python -m services.up.native.launch RUN_DIR/programs/NAME.json`.

If the service's main process was killed, its children, such as nginx's workers, can still hold its port. Therefore this
module first kills the remaining processes of the service's last process group. As in a container, the service gets only
a few system variables and its own variables. If `Program.inherits` is set, it also gets all variables of supervisord.
PATH starts with the folder of the service's program.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from services.stack import processes
from services.stack.rundir import RunDir


def main(description: Path) -> None:
    """Replace this process with the service."""
    run, service = RunDir(str(description.parent.parent)), description.stem
    program = json.loads(description.read_text(encoding="utf-8"))
    session = os.getsid(0)
    processes.end_group(run.process_group(service), session)
    processes.end(lambda: processes.orphaned_mounts(session), 0)
    run.group_file(service).write_text(str(os.getpgrp()))
    # vLLM fails to bind a socket file that exists.
    run.socket(service).unlink(missing_ok=True)
    system = os.environ if program["inherits"] else processes.from_environment(*processes.SYSTEM_VARIABLES)
    environment = {**system, **program["environment"]}
    environment["PATH"] = os.pathsep.join([program["path"], environment.get("PATH", os.defpath)])
    os.execvpe(program["command"][0], program["command"], environment)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
