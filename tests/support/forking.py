"""Run modules in forks of this process, which has imported what they import; `forked.py` sends the commands.

It does not import what looks at the environment when it is imported: prometheus_client, and all that import it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

IMPORTED = (
    *("flask", "gunicorn.app.wsgiapp", "gunicorn.workers.gthread", "limits.aio.storage"),
    *("rewardstack.scorers.judge", "rewardstack_rules.golden", "rewardstack_rules.jobs.store"),
    "rewardstack_rules.scoring.evaluator",
)


def serve(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for every command until the tests' process ends. Return the command and its files in each fork."""
    running: dict[int, tuple[int, int]] = {}
    while True:
        for ready in select.select([control.fileno(), *running], [], [])[0]:
            if ready in running:
                _report(ready, *running.pop(ready))
                continue
            message, files, _, _ = socket.recv_fds(control, 2**20, 3)
            if not message:
                sys.exit()
            if (child := os.fork()) == 0:
                return json.loads(message), files
            running[os.pidfd_open(child)] = child, files[0]
            os.close(files[1])
            os.close(files[2])
            control.send(str(child).encode())


def _report(descriptor: int, child: int, pipe: int) -> None:
    """Write the exit status of a fork that has ended."""
    with suppress(BrokenPipeError):
        os.write(pipe, str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    os.close(pipe)
    os.close(descriptor)


def run(command: dict[str, Any], files: list[int]) -> None:
    """Run the module of a command in this process, as a new interpreter would."""
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), files[1], files[2])):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    sys.path[:1] = [command["cwd"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [command["module"], *command["arguments"]]
    setattr(os, "execve", run_gunicorn)  # noqa: B010, as types forbid it
    runpy.run_module(command["module"], run_name="__main__", alter_sys=True)


def run_gunicorn(_: str, command: list[str], environment: dict[str, str]) -> NoReturn:
    """Run the module of a `module_command`, with which the server replaces itself, in this process."""
    os.environ.update(environment)
    sys.path[:] = dict.fromkeys([*environment["PYTHONPATH"].split(os.pathsep), *filter(None, sys.path[1:])])
    sys.argv = command[3:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    run(*serve(socket.socket(fileno=0)))
