"""Run one server in the foreground: its output goes to the terminal, and it stops when the script stops."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from services.stack import probes
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.stack.signals import defer_signals

POLL_SECONDS = 0.5
ABANDON_SECONDS = 5.0
"""Seconds from SIGTERM to SIGKILL for a server that is still loading: it has no requests, and vLLM ignores SIGTERM."""


def serve(
    command: Sequence[str],
    environment: Mapping[str, str],
    address: str,
    startup_timeout: float,
    stop_grace: float,
    announce: Callable[[], None],
) -> None:
    """Run a server until it ends or is interrupted; then kill its whole process group.

    Args:
        command: command that starts the server.
        environment: all environment variables of the server.
        address: host and port of the server, for its health check.
        startup_timeout: maximum seconds until the server is healthy.
        stop_grace: seconds from SIGTERM to SIGKILL for a healthy server.
        announce: called when the server is healthy.

    Raises:
        StackError: the server exited, or was not healthy in time.
    """
    process, healthy = None, False
    try:
        with defer_signals():
            # Not in the user's directory, whose modules would shadow those of vLLM.
            process = subprocess.Popen(
                command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        _await_health(process, address, startup_timeout)
        healthy = True
        announce()
        raise StackError(f"judge: exited with status {process.wait()}", "see the lines above")
    finally:
        if process:
            with defer_signals():
                _end(process, stop_grace if healthy else ABANDON_SECONDS)


def _await_health(process: subprocess.Popen[bytes], address: str, startup_timeout: float) -> None:
    """Return when the server is healthy.

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
    """Send SIGTERM to a server so that it drains; when it has ended or after `grace` seconds, kill its group."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
