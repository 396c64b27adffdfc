"""The process that server processes talk to: queues their tasks, keeps their deadlines, ends when they are all gone.

`python -m rewardstack_rules.isolation.supervisor DIRECTORY LIFELINE CONFIG` puts itself into the background, below a
process that watches over it (`watch`), and returns when tasks are taken; otherwise it says why not on standard output
and exits with `EXIT_BROKEN`.
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
from rewardstack_rules.isolation.watch import beat, fork_watched

SOCKET_NAME = "socket"

EXIT_BROKEN = 64
"""Exit status where the entry cannot be run."""

EXIT_DIED = 70
"""Exit status where the supervisor died while it started."""

TAKES_TASKS = "ready"

logger = logging.getLogger(__name__)


class Client(FrameConnection):
    """The connection of one server process.

    Args:
        server: whose pool runs its tasks.
    """

    def __init__(self, server: Supervisor) -> None:
        super().__init__(server.config.max_frame_bytes)
        self._server = server
        self._tasks: dict[int, Task] = {}

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits for its tasks."""
        for task in self._tasks.values():
            self._server.pool.drop(task)
        self._tasks.clear()

    def frame_received(self, frame: Frame) -> None:
        """The server process wants something."""
        if frame.kind in (Kind.TASK, Kind.BRIEF):
            self._submit(frame)
        elif frame.kind is Kind.DROP:
            task = self._tasks.pop(frame.id, None)
            if task is not None:
                self._server.pool.drop(task)
        elif frame.kind is Kind.STATS:
            stats = {"pid": os.getpid()} | self._server.pool.stats()
            self.send(Frame(Kind.STATS, frame.id, dump(stats)))

    def _submit(self, frame: Frame) -> None:
        def reply(result: bytes) -> None:
            if self._tasks.pop(frame.id, None) is not None:
                self.send(Frame(Kind.RESULT, frame.id, result))

        ident, is_brief = next(self._server.task_ids), frame.kind is Kind.BRIEF
        task = Task(ident, frame.body, frame.seconds, reply, is_brief, frame.tenant)
        self._tasks[frame.id] = task
        self._server.pool.submit(task)


class Supervisor:
    """Listens in a private directory, and removes it at its end.

    Args:
        directory: holds the socket; only this user may enter it.
        lifeline: read end of a pipe whose write end every server process holds.
        config: what children run.
        status: where to say that tasks are taken, or why not; closed then.
        pulse: where signs of life go (`watch.beat`).
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
        self._deserted = False
        self.pool = Scheduler(config, self._loop, self._ready.set, self._give_up)

    async def run(self) -> None:
        """Serves until every server process is gone, or the entry turns out not to run."""
        beat(self._loop, self._pulse)
        self._loop.add_signal_handler(signal.SIGTERM, self._end.set)
        self._loop.add_signal_handler(signal.SIGCHLD, reap_orphans)
        self._loop.add_reader(self._lifeline, self._leave)
        self.pool.start()
        try:
            await self._either(self._ready, self._end)
            if self._ready.is_set():
                await self._serve()
        finally:
            self.pool.stop()
            if self._deserted:
                shutil.rmtree(self._directory, ignore_errors=True)
        if self._broken:
            logger.error("the isolation of %s ends: %s", self.config.entry, self._broken)
            self._tell(self._broken)

    async def _serve(self) -> None:
        path = self._directory / SOCKET_NAME
        server = await self._loop.create_unix_server(lambda: Client(self), path)
        self._tell(TAKES_TASKS)
        await self._end.wait()
        server.close()
        path.unlink(missing_ok=True)

    def _leave(self) -> None:
        """No server process is left, so none needs the directory."""
        self._deserted = True
        self._end.set()

    def _give_up(self, message: str) -> None:
        self._broken = message
        self._end.set()

    def _tell(self, message: str) -> None:
        """Hands the process in the foreground its message."""
        if self._status >= 0:
            os.write(self._status, message.encode(errors="backslashreplace"))
            os.close(self._status)
            self._status = -1

    @staticmethod
    async def _either(*events: asyncio.Event) -> None:
        waiting = [asyncio.ensure_future(event.wait()) for event in events]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for waiter in waiting:
            waiter.cancel()


async def _supervise(directory: Path, lifeline: int, config: IsolationConfig, status: int, pulse: int) -> None:
    await Supervisor(directory, lifeline, config, status, pulse).run()


def main() -> None:
    """Goes into the background; the foreground waits for the news and exits with it."""
    directory, lifeline, config = Path(sys.argv[1]), int(sys.argv[2]), IsolationConfig.from_json(sys.argv[3])
    logging.basicConfig(level=logging.INFO)
    news, status = os.pipe()
    if os.fork():
        os.close(status)
        message = os.read(news, 4096).decode()
        print(message)
        raise SystemExit(0 if message == TAKES_TASKS else EXIT_BROKEN if message else EXIT_DIED)
    os.close(news)
    os.setsid()
    silence(1)
    pulse = fork_watched(f"the supervisor of {config.entry}")
    adopt_orphans()
    asyncio.run(_supervise(directory, lifeline, config, status, pulse))


if __name__ == "__main__":
    main()
