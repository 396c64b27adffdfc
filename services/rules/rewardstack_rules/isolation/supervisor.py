"""The supervisor process: it accepts tasks from server processes, and ends when the last server process ends.

`python -m rewardstack_rules.isolation.supervisor DIRECTORY LIFELINE CONFIG` starts the supervisor in the background, as
the child of a process that watches it (module `watch`), and returns once the supervisor accepts tasks. If the entry
cannot be run, the command prints the reason on standard output and exits with `EXIT_BROKEN`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
import signal
import sys
from pathlib import Path

from rewardstack_rules.isolation.child_link import Task
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.connection import FrameConnection
from rewardstack_rules.isolation.frames import Frame, Kind, dump
from rewardstack_rules.isolation.process import adopt_orphans, reap_orphans, silence
from rewardstack_rules.isolation.scheduler import Scheduler
from rewardstack_rules.isolation.watch import fork_watched, send_heartbeats

SOCKET_NAME = "socket"

EXIT_BROKEN = 64
"""Exit status if the entry cannot be run."""

EXIT_DIED = 70
"""Exit status if the supervisor died during startup."""

READY = "ready"

logger = logging.getLogger(__name__)


class Client(FrameConnection):
    """The connection to one server process.

    Args:
        server: the supervisor, whose `scheduler` runs the tasks.
    """

    def __init__(self, server: Supervisor) -> None:
        super().__init__(server.config.max_frame_bytes)
        self._server = server
        self._tasks: dict[int, Task] = {}

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop all tasks of this client."""
        for task in self._tasks.values():
            self._server.scheduler.drop(task)
        self._tasks.clear()

    def frame_received(self, frame: Frame) -> None:
        """Handle a frame of the server process."""
        if frame.kind in (Kind.TASK, Kind.QUICK_TASK):
            self._submit(frame)
        elif frame.kind is Kind.DROP:
            task = self._tasks.pop(frame.id, None)
            if task is not None:
                self._server.scheduler.drop(task)
        elif frame.kind is Kind.STATS:
            stats = {"pid": os.getpid()} | self._server.scheduler.stats()
            self.send(Frame(Kind.STATS, frame.id, dump(stats)))

    def _submit(self, frame: Frame) -> None:
        def reply(result: bytes) -> None:
            if self._tasks.pop(frame.id, None) is not None:
                self.send(Frame(Kind.RESULT, frame.id, result))

        ident, stop_if_slow = next(self._server.task_ids), frame.kind is Kind.QUICK_TASK
        task = Task(ident, frame.body, frame.seconds, reply, stop_if_slow, frame.tenant)
        self._tasks[frame.id] = task
        self._server.scheduler.submit(task)


class Supervisor:
    """Listens on a socket in a private directory, and removes the directory when no server process is left.

    Args:
        directory: the directory of the socket; only this user may enter it.
        lifeline: read end of a pipe whose write end every server process holds.
        config: the entry and the limits.
        status: write end of a pipe for the startup result; closed once the result is written.
        pulse: write end of a pipe for heartbeats (`watch.send_heartbeats`).
    """

    def __init__(self, directory: Path, lifeline: int, config: IsolationConfig, status: int, pulse: int) -> None:
        self.config = config
        self.task_ids = itertools.count(1)
        self._directory = directory
        self._lifeline = lifeline
        self._status = status
        self._pulse = pulse
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._end = asyncio.Event()
        self._broken = ""
        self._has_no_clients = False
        self.scheduler = Scheduler(config, self._loop, self._ready.set, self._give_up)

    async def run(self) -> None:
        """Serve until every server process has ended, SIGTERM arrives, or the entry cannot be run."""
        send_heartbeats(self._loop, self._pulse)
        self._loop.add_signal_handler(signal.SIGTERM, self._end.set)
        self._loop.add_signal_handler(signal.SIGCHLD, reap_orphans)
        self._loop.add_reader(self._lifeline, self._leave)
        self.scheduler.start()
        try:
            await self._wait_for_any(self._ready, self._end)
            if self._ready.is_set():
                await self._serve()
        finally:
            self.scheduler.stop()
            if self._has_no_clients:
                shutil.rmtree(self._directory, ignore_errors=True)
        if self._broken:
            if self._status < 0:  # the startup result has been sent, so no caller of `start` can get the error
                logger.error("the supervisor of %s stops: %s", self.config.entry, self._broken)
            self._report(self._broken)

    async def _serve(self) -> None:
        path = self._directory / SOCKET_NAME
        server = await self._loop.create_unix_server(lambda: Client(self), path)
        self._report(READY)
        await self._end.wait()
        server.close()
        path.unlink(missing_ok=True)

    def _leave(self) -> None:
        """Make the supervisor end and remove its directory, because no server process is left."""
        self._has_no_clients = True
        self._end.set()

    def _give_up(self, message: str) -> None:
        self._broken = message
        self._end.set()

    def _report(self, message: str) -> None:
        """Send the startup result to the foreground process; do nothing if a result has already been sent."""
        if self._status >= 0:
            os.write(self._status, message.encode(errors="backslashreplace"))
            os.close(self._status)
            self._status = -1

    @staticmethod
    async def _wait_for_any(*events: asyncio.Event) -> None:
        waiting = [asyncio.ensure_future(event.wait()) for event in events]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for waiter in waiting:
            waiter.cancel()


async def _supervise(directory: Path, lifeline: int, config: IsolationConfig, status: int, pulse: int) -> None:
    await Supervisor(directory, lifeline, config, status, pulse).run()


def main() -> None:
    """Fork the supervisor into the background; in the foreground, print its startup result and exit."""
    directory, lifeline, config = Path(sys.argv[1]), int(sys.argv[2]), IsolationConfig.from_json(sys.argv[3])
    logging.basicConfig(level=logging.INFO)
    result, status = os.pipe()
    if os.fork():
        os.close(status)
        message = os.read(result, 4096).decode()
        print(message)
        raise SystemExit(0 if message == READY else EXIT_BROKEN if message else EXIT_DIED)
    os.close(result)
    os.setsid()
    silence(1)
    pulse = fork_watched(f"the supervisor of {config.entry}")
    adopt_orphans()
    asyncio.run(_supervise(directory, lifeline, config, status, pulse))


if __name__ == "__main__":
    main()
