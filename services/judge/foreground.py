"""Run one server in the foreground. Its output goes to the terminal, and it stops when the script stops."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from services.stack import probes
from services.stack.errors import StackError
from services.stack.processes import defer_signals
from services.stack.rundir import ROOT

POLL_SECONDS = 0.5
LOADING_STOP_GRACE = 5.0
"""Seconds from SIGTERM to SIGKILL for a server that is still loading. It has no requests, and vLLM ignores SIGTERM."""


def serve(
    command: Sequence[str],
    environment: Mapping[str, str],
    address: str,
    startup_timeout: float,
    stop_grace: float,
    announce: Callable[[], None],
) -> None:
    """Run a server until it ends or is interrupted, then kill its whole process group.

    Args:
        command: command that starts the server.
        environment: all environment variables of the server.
        address: host and port of the server, for its health check.
        startup_timeout: maximum seconds until the server is healthy.
        stop_grace: seconds from SIGTERM to SIGKILL for a healthy server.
        announce: called once the server is healthy.

    Raises:
        StackError: the server exited, or was not healthy in time.
    """
    process, is_healthy = None, False
    try:
        with defer_signals():
            # Do not run in the user's directory, whose modules would shadow those of vLLM.
            process = subprocess.Popen(
                command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        _await_health(process, address, startup_timeout)
        is_healthy = True
        announce()
        raise StackError(f"judge: exited with status {process.wait()}", "see the lines above")
    finally:
        if process:
            with defer_signals():
                _end(process, stop_grace if is_healthy else LOADING_STOP_GRACE)


def _await_health(process: subprocess.Popen[bytes], address: str, startup_timeout: float) -> None:
    """Wait until the server is healthy.

    Raises:
        StackError: the server exited, or was not healthy in time.
    """
    deadline = time.monotonic() + startup_timeout
    while process.poll() is None:
        if not probes.http(address, "/health"):
            return
        if time.monotonic() > deadline:
            problem = f"judge: not healthy after {startup_timeout:g} s (MODEL_UP_TIMEOUT)"
            raise StackError(problem, "see the lines above")
        time.sleep(POLL_SECONDS)
    raise StackError(f"judge: exited during startup with status {process.returncode}", "see the lines above")


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM to a server, so that it drains. Kill its group once it has ended, or after `grace` seconds."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
