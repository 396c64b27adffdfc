"""One server in the foreground: its output is the user's, and it ends with the script that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from services.stack import probes
from services.stack.errors import StackError
from services.stack.interruption import undisturbed
from services.stack.rundir import ROOT

POLL_SECONDS = 0.5
STOP_SECONDS = 30.0
ABANDON_SECONDS = 5.0
"""For a server that is still loading its model: vLLM does not hear SIGTERM then, and has nothing to finish."""


def serve(
    command: Sequence[str], environment: Mapping[str, str], address: str, seconds: float, announce: Callable[[], None]
) -> None:
    """Run a server until it ends or is interrupted; nothing that it started is left.

    Args:
        command: that starts it.
        environment: all of its variables.
        address: host and port at which it answers /health.
        seconds: that it may take until it does.
        announce: called once it does.

    Raises:
        StackError: it ended by itself, or was not well in time.
    """
    process, well = None, False
    try:
        with undisturbed():
            # Not in the user's own directory, whose modules would come before those of vLLM.
            process = subprocess.Popen(
                command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        deadline = time.monotonic() + seconds
        while process.poll() is None:
            if not well and not probes.http(address, "/health"):
                well = True
                announce()
            if not well and time.monotonic() > deadline:
                raise StackError(f"judge: not well after {seconds:g} s (MODEL_UP_TIMEOUT)", "see the lines above")
            time.sleep(POLL_SECONDS)
        when = "" if well else " while it was starting"
        raise StackError(f"judge: it ended{when}, with status {process.returncode}", "see the lines above")
    finally:
        if process:
            with undisturbed():
                _end(process, STOP_SECONDS if well else ABANDON_SECONDS)


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    """End a process with its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
