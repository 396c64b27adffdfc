"""The verdict on a process: the program passed, failed or exceeded a limit, or the sandbox failed."""

from __future__ import annotations

import signal
from typing import NamedTuple

from rewardstack_rules.code.launcher import KILLED, OUTPUT_BYTES, SLACK_BYTES, Process

EXIT_COMPILE, EXIT_NO_FUNCTION, EXIT_KILLED = 65, 66, 67
PASSED, WRONG, FAULT, AGAIN, UNSCORED = "passed", "wrong answer", "fault", "again", "unscored"
COMPILE_ERROR = "compile error"
LIMITS = ("time limit", "memory limit", "output limit")
"""Verdicts that may differ in another run; a result with one of them is not cached."""


class Verdict(NamedTuple):
    """The verdict on a test or a compilation.

    Args:
        name: `PASSED`, `WRONG`, `COMPILE_ERROR`, one of `LIMITS`, or a description of another failure. Three names are
            no verdict on the program: `FAULT` (the sandbox failed), `AGAIN` (the run failed, but a second run may
            succeed) and `UNSCORED` (the tests are invalid).
        seconds: CPU seconds; at least `wall_limit` if the program was asleep for too long.
        detail: the cause in words, for `FAULT`, `AGAIN`, `UNSCORED` and compile errors.
        at_last: for `AGAIN`, the name if a run alone ends like that, too.
    """

    name: str
    seconds: float = 0.0
    detail: str = ""
    at_last: str = FAULT


def wall_limit(cpu: float) -> float:
    """Return the total seconds during which the processes of a test may be asleep, given the CPU limit in seconds."""
    return 2 * cpu + 1


def judge(process: Process, written: int) -> Verdict:
    """Return the verdict on how a process ended: `PASSED` if it ended normally and within its limits.

    Args:
        process: the process, with its result.
        written: size of its output, in bytes.
    """
    seconds, limit = process.used, process.cpu
    if process.killed == "asleep":
        return Verdict("time limit", max(seconds, wall_limit(limit)))
    if seconds > limit or process.status == -signal.SIGXCPU:
        return Verdict("time limit", seconds)
    if process.killed == "starved":
        return Verdict(AGAIN, seconds, "the machine gave the program too little CPU time")
    if written >= OUTPUT_BYTES or process.status == -signal.SIGXFSZ:
        return Verdict("output limit", seconds)
    if process.peak > process.memory + SLACK_BYTES:
        return Verdict("memory limit", seconds)
    if process.killed == "ended":
        # The launcher killed the process because the tester ended or exceeded its CPU limit. So the process has not
        # failed: the tester's report decides.
        return Verdict(PASSED, seconds)
    if process.status == KILLED:
        at_last = "memory limit" if process.peak > process.memory / 2 else FAULT
        return Verdict(AGAIN, seconds, "the program's process was killed from outside", at_last)
    if process.status == EXIT_COMPILE and process.program != "binary":
        return Verdict(COMPILE_ERROR, seconds)
    if process.status == EXIT_NO_FUNCTION and process.program != "binary":
        return Verdict("the program has no such function", seconds)
    if process.status:
        return Verdict("runtime error", seconds)
    return Verdict(PASSED, seconds)
