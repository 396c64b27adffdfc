"""Run one program in a child process, with limits, and print a report on it. SandboxFusion runs this code.

The task and the program's files, which the module `fusion` has sent, are in the current folder. The last line of
standard output is the report, as JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import time
from typing import Any, NoReturn

from rewardstack_rules.code.inside import programs
from rewardstack_rules.code.inside.processes import TICK, StallDetector, address_space, allowed_tasks, set_limits
from rewardstack_rules.isolation.process import cpu_seconds, die_with_parent, silence

PAUSE = 0.002
"""Seconds before the first check of a child. Each later wait is `PAUSE` longer than the wait before, up to `TICK`."""
PROGRAMS = {"script": programs.script, "call": programs.call, "binary": programs.binary, "build": programs.build}


def main(name: str) -> None:
    """Run the task in a file of the current folder, and print its report."""
    with open(name) as file:
        task = json.load(file)
    atexit._clear()
    print("\n" + json.dumps(_run(task)), flush=True)


def _run(task: dict[str, Any]) -> dict[str, Any]:
    """Run a task, and return the report on it (`_watch`).

    Args:
        task: a dict with these keys:
            `program`, `options`, `limits`: as in a message to the launcher (`inside.launcher`).
            `inputs`, `outputs`: indices of the files that the program reads, and of those that it writes. The name of a
            file is its index.
            `wall`: total seconds that the program may be asleep.
            `timeout`: seconds after which a program that has not ended counts as starved.

    Raises:
        OSError: the child could not be started.
    """
    limits = {**task["limits"], "tasks": allowed_tasks()}
    fds = [
        os.open(str(at), os.O_RDONLY if at in task["inputs"] else os.O_RDWR | os.O_CREAT, 0o644)
        for at in range(len(task["inputs"]) + len(task["outputs"]))
    ]
    # The file `0` is the program. A compiled program must be executable. If SandboxFusion's setting `set_uid` is on,
    # another user owns the file: `chmod` fails, but the file is already executable.
    with contextlib.suppress(PermissionError):
        os.chmod("0", 0o755)
    faults, theirs = os.pipe()
    born, driver = address_space(), os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(task, fds, limits, born, driver, theirs)
    os.close(theirs)
    report = _watch(pid, limits["cpu"], task["wall"], task["timeout"])
    _kill(pid)  # the processes that the child has started
    if fault := os.read(faults, 1000):
        raise OSError(fault.decode())
    return report


def _become(
    task: dict[str, Any], fds: list[int], limits: dict[str, Any], born: int, driver: int, faults: int
) -> NoReturn:
    """Run the program in the child; if it cannot be started, write why to the pipe `faults`."""
    try:
        try:
            die_with_parent(driver)
            os.setsid()
            silence(0, 1, 2)
            programs.replace_streams()
            set_limits(limits, born)
            options = dict(task["options"])
            if command := options.get("command"):
                options["command"] = [shutil.which(command[0]) or command[0], *command[1:]]
        except Exception as error:
            os.write(faults, f"the program could not be started: {error}".encode())
            os._exit(1)
        os.close(faults)
        PROGRAMS[task["program"]](fds, options)
    finally:
        os._exit(1)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _watch(pid: int, cpu: float, wall: float, timeout: float) -> dict[str, Any]:
    """Wait for a child, and return its result: `status`, `used`, `peak` and `killed` of `launcher.Process`.

    Kill it if it exceeds its CPU limit, sleeps for too long or is starved of CPU time.
    """
    stall = StallDetector(wall, timeout)
    pause, killed = 0.0, ""
    while (ended := os.wait4(pid, os.WNOHANG))[0] == 0:
        pause = min(TICK, pause + PAUSE)
        time.sleep(pause)
        now = time.monotonic()
        if killed or now - stall.checked < TICK:
            continue
        used = cpu_seconds(pid)
        stalled = stall.check(now, {pid: used})
        killed = "ended" if used > cpu else stalled
        if killed:
            _kill(pid)
            os.kill(pid, signal.SIGKILL)
    _, status, usage = ended
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    return {"status": os.waitstatus_to_exitcode(status), "used": seconds, "peak": peak, "killed": killed}
