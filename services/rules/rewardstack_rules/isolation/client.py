"""Send tasks from a server process to isolated child processes, through their supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from rewardstack.errors import ConfigError, UnreachableError
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.connection import FrameConnection
from rewardstack_rules.isolation.frames import NO_TENANT, Frame, Kind, dump, load
from rewardstack_rules.isolation.launch import supervisor_handle

Result = dict[str, Any]

ATTEMPTS = 2
"""Maximum number of times a task is sent. It is sent again if the supervisor died during the first attempt."""


class Connection(FrameConnection):
    """One connection to the supervisor, shared by all tasks of an event loop.

    Args:
        limit: maximum size of a result, in bytes.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._ids = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self.lost = False

    def ask(
        self, kind: Kind, body: bytes = b"", seconds: float = 0.0, tenant: bytes = NO_TENANT
    ) -> asyncio.Future[bytes]:
        """Send a frame; the arguments are fields of `Frame`.

        Returns:
            A future of the reply's body. It raises ConnectionResetError if the connection ends before a reply.
        """
        ident = next(self._ids)
        future: asyncio.Future[bytes] = self._loop.create_future()
        if self.lost or self._transport is None:
            future.set_exception(ConnectionResetError())
            return future
        self._waiting[ident] = future
        self.send(Frame(kind, ident, body, seconds, tenant))
        return future

    def drop(self, futures: set[asyncio.Future[bytes]]) -> None:
        """Cancel requests whose replies are no longer needed."""
        if not futures:
            return
        for ident in [ident for ident, future in self._waiting.items() if future in futures]:
            del self._waiting[ident]
            if not self.lost:
                self.send(Frame(Kind.DROP, ident))

    def frame_received(self, frame: Frame) -> None:
        """Pass a reply to the future that waits for it."""
        future = self._waiting.pop(frame.id, None)
        if future is not None and not future.done():
            future.set_result(frame.body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Set ConnectionResetError on all futures that wait for a reply."""
        self.lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionResetError())
        self._waiting.clear()


class _Link:
    """The connection of one event loop, and the lock that ensures that it is opened only once."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.opening = asyncio.Lock()


class IsolationClient:
    """Runs tasks in isolated child processes, and starts their supervisor if it is not running.

    The client has one connection per event loop. A forked process has another loop than its parent, so it opens a new
    connection. It does not close the inherited connection, because the parent's loop still uses that.

    Args:
        config: the entry and the limits; processes can share a supervisor for the same configuration
            (see `launch.start_supervisor`).
    """

    def __init__(self, config: IsolationConfig) -> None:
        self._config = config
        self._links: dict[asyncio.AbstractEventLoop, _Link] = {}

    async def run(
        self,
        tasks: Sequence[Mapping[str, Any]],
        timeout: float,
        limit: float | None = None,
        *,
        stop_if_slow: bool = False,
        tenant: str = "",
    ) -> list[Result]:
        """Run each task in a child. A task must have no side effects, because it may be started more than once.

        If this call is cancelled, waiting tasks are dropped, and running tasks are stopped once they count as slow.

        Args:
            tasks: arguments of the entry, in JSON types.
            timeout: seconds that each task may run, without the time in which it waits for a child.
            limit: seconds that the whole call may take; None for no limit.
            stop_if_slow: whether to stop a task, with the error `timeout`, as soon as it counts as slow.
            tenant: owner of the tasks; only a shared child runs tasks of more than one tenant.

        Returns:
            One result per task, in order: the dict that the entry returned, or a dict with the key `error`. The error
            is `timeout` (the task exceeded `timeout` or `limit`), `killed` (its child ran out of memory, crashed in
            native code, or sent an invalid result), `oversize` (the task exceeds `max_frame_bytes`), `unwritable` (the
            task is not JSON) or `raised` (the entry raised an exception). For the last three errors, the dict also has
            the key `message`.

        Raises:
            ConfigError: the timeout is not a positive number, or the entry cannot be run.
            UnreachableError: no supervisor could be started, or the supervisor died twice.
        """
        if not (timeout > 0 and math.isfinite(timeout)):
            raise ConfigError(f"timeout: {timeout} is not a number of seconds above 0", "timeout")
        results: list[Result | None] = [None] * len(tasks)
        bodies = self._encode(tasks, results)
        digest = blake2b(tenant.encode(), digest_size=len(NO_TENANT)).digest()
        kind = Kind.QUICK_TASK if stop_if_slow else Kind.TASK
        with contextlib.suppress(asyncio.TimeoutError):  # tasks without a result have timed out
            await asyncio.wait_for(self._run(bodies, results, timeout, kind, digest), limit)
        return [{"error": "timeout"} if result is None else result for result in results]

    async def stats(self) -> dict[str, int]:
        """Return the supervisor's process id (`pid`) and its counts (`Scheduler.stats`).

        Raises:
            UnreachableError: the supervisor died, or could not be started.
        """
        connection = await self._get_connection()
        try:
            stats: dict[str, int] = load(await connection.ask(Kind.STATS))
        except ConnectionResetError as error:
            raise UnreachableError("the isolation supervisor died") from error
        return stats

    def close(self) -> None:
        """Close all connections. A later call of `run` or `stats` opens a new connection."""
        for loop, link in self._links.items():
            if link.connection is not None and not loop.is_closed():
                loop.call_soon_threadsafe(link.connection.abort)
        self._links.clear()

    def _encode(self, tasks: Sequence[Mapping[str, Any]], results: list[Result | None]) -> dict[int, bytes]:
        """Return the tasks as frame bodies, by position. For a task that cannot be sent, set an error in `results`."""
        bodies = {}
        for index, task in enumerate(tasks):
            try:
                body = dump(task)
            except (TypeError, ValueError, RecursionError) as error:
                results[index] = {"error": "unwritable", "message": f"the task is not JSON: {error}"}
                continue
            if len(body) > self._config.max_frame_bytes:
                message = f"a task of {len(body)} bytes is over the limit of {self._config.max_frame_bytes}"
                results[index] = {"error": "oversize", "message": message}
            else:
                bodies[index] = body
        return bodies

    async def _run(
        self, bodies: dict[int, bytes], results: list[Result | None], timeout: float, kind: Kind, tenant: bytes
    ) -> None:
        for _ in range(ATTEMPTS):
            if not bodies:
                return
            connection = await self._get_connection()
            replies = {connection.ask(kind, body, timeout, tenant): index for index, body in bodies.items()}
            await self._collect(connection, replies, results)
            bodies = {index: body for index, body in bodies.items() if results[index] is None}
        if bodies:
            raise UnreachableError(f"the isolation supervisor died {ATTEMPTS} times while running {len(bodies)} tasks")

    @staticmethod
    async def _collect(
        connection: Connection, replies: dict[asyncio.Future[bytes], int], results: list[Result | None]
    ) -> None:
        """Store results as they arrive. A task gets no result if the supervisor dies before it replies."""
        try:
            await asyncio.wait(replies)
        finally:
            connection.drop({future for future in replies if not future.done()})
            for future, index in replies.items():
                if future.done() and future.exception() is None:
                    results[index] = _read(future.result())

    async def _get_connection(self) -> Connection:
        """Return the connection of this event loop, and open it if needed."""
        loop = asyncio.get_running_loop()
        link = self._links.get(loop)
        if link is None:
            self._links = {other: known for other, known in self._links.items() if not other.is_closed()}
            link = self._links.setdefault(loop, _Link())
        async with link.opening:
            if link.connection is None or link.connection.lost:
                link.connection = await self._open()
        return link.connection

    async def _open(self) -> Connection:
        handle = supervisor_handle(self._config)
        loop = asyncio.get_running_loop()
        for _ in range(ATTEMPTS):
            try:
                return (await loop.create_unix_connection(self._connection, str(handle.socket)))[1]
            except (FileNotFoundError, ConnectionRefusedError):
                await asyncio.to_thread(handle.start)
        raise UnreachableError("the isolation supervisor died right after it started")

    def _connection(self) -> Connection:
        return Connection(self._config.max_frame_bytes)


def _read(body: bytes) -> Result:
    """Return the result in the body of a frame, or the error `killed` if the body is invalid."""
    try:
        result = load(body)
    except (ValueError, RecursionError):
        result = None
    return result if isinstance(result, dict) else {"error": "killed"}
