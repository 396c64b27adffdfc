"""Replicas of vLLM as child processes, each the leader of a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from services.stack.console import say, tail
from services.stack.errors import StackError

STOP_SECONDS = 30.0
ABANDON_SECONDS = 5.0
"""For a server that is still loading its model: vLLM does not hear SIGTERM then, and has nothing to finish."""

POLL_SECONDS = 0.5
SAY_SECONDS = 30.0


@dataclass
class Replica:
    """One server process with what it starts.

    Args:
        name: for messages.
        command: that starts it.
        environment: all of its variables.
        log: file for what it says.
        socket: Unix socket that it listens on; None for a port.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    socket: Path | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it, without what an earlier life left behind."""
        self.kill()
        if self.socket:
            self.socket.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                # Not the user's own directory, whose modules would come before those of vLLM.
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        """Whether its main process is gone."""
        return self.process is not None and self.process.poll() is not None

    def terminate(self) -> None:
        """Ask it to stop."""
        if not self.ended:
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End what is left of its group."""
        self._signal(signal.SIGKILL)
        if self.process:
            self.process.wait()
            self.process = None

    def _signal(self, number: signal.Signals) -> None:
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


def wait(
    replicas: Iterable[Replica],
    healthy: Callable[[Replica], bool],
    seconds: float,
    pause: Callable[[float], None],
) -> None:
    """Wait until every replica answers.

    Args:
        replicas: that were started.
        healthy: asks one.
        seconds: to wait at most.
        pause: sleeps for that many seconds.

    Raises:
        StackError: one ended or time ran out; the last lines of its log are printed first.
    """
    start = said = time.monotonic()
    waiting = list(replicas)
    while waiting:
        late = time.monotonic() - start > seconds
        for replica in list(waiting):
            if replica.ended or late:
                show_end(replica)
                why = f"not well after {seconds:.0f} s (MODEL_UP_TIMEOUT)" if late else "it ended while it was starting"
                raise StackError(f"{replica.name}: {why}", "see what the lines above say")
            if healthy(replica):
                waiting.remove(replica)
        if time.monotonic() - said > SAY_SECONDS:
            said = time.monotonic()
            say(f"    still loading after {said - start:.0f} s: {tail(waiting[0].log, 1)[:200]}" if waiting else "")
        pause(POLL_SECONDS if waiting else 0)


def show_end(replica: Replica) -> None:
    """Print the last lines of a replica's log."""
    say(f"--- last lines of {replica.log}\n{tail(replica.log)}\n---")


def stop(replicas: Sequence[Replica], seconds: float = STOP_SECONDS) -> None:
    """Stop them all: first asked to, ended when that time has passed."""
    for replica in replicas:
        replica.terminate()
    deadline = time.monotonic() + seconds
    while not all(replica.ended for replica in replicas if replica.process) and time.monotonic() < deadline:
        time.sleep(0.1)
    for replica in replicas:
        replica.kill()
