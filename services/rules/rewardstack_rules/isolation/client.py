"""Send tasks from a server process to isolated child processes, through their supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from rewardstack.cause import Cause
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

    async def ask(self, kind: Kind, body: bytes = b"", seconds: float = 0.0, tenant: bytes = NO_TENANT) -> bytes:
        """Send a frame and return the body of the reply; the arguments are fields of `Frame`.

        If this call is cancelled, the supervisor drops the task.

        Raises:
            ConnectionResetError: the connection ended before a reply.
        """
        if self.lost or self._transport is None:
            raise ConnectionResetError
        ident = next(self._ids)
        future = self._waiting[ident] = self._loop.create_future()
        self.send(Frame(kind, ident, body, seconds, tenant))
        try:
            return await future
        finally:
            if self._waiting.pop(ident, None) is not None:
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
    """The connection of one event loop, and a lock that keeps its tasks from opening two connections."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.opening = asyncio.Lock()


class IsolationClient:
    """Runs tasks in isolated child processes, and starts their supervisor if it is not running.

    The client has one connection per event loop. A forked process has a different loop than its parent, so it opens a
    new connection. It does not close the inherited connection, which the parent's loop still uses.

    Args:
        config: the entry and the limits; processes can share a supervisor for the same configuration
            (see `launch.start_supervisor`).
    """

    def __init__(self, config: IsolationConfig) -> None:
        self._config = config
        self._links: dict[asyncio.AbstractEventLoop, _Link] = {}

    async def run(
        self, task: Mapping[str, Any], timeout: float, *, stop_if_slow: bool = False, tenant: str = ""
    ) -> Result:
        """Run a task in a child. A task must have no side effects, because it may be started more than once.

        If this call is cancelled, a waiting task is dropped, and a running task is stopped once it counts as slow.

        Args:
            task: the argument of the entry, in JSON types.
            timeout: seconds that the task may run, without the time in which it waits for a child.
            stop_if_slow: whether to stop the task, with the error `timeout`, as soon as it counts as slow.
            tenant: owner of the task; only a shared child runs tasks of more than one tenant.

        Returns:
            The dict that the entry returned, or a dict with the key `error`. The values of `error` are listed here; for
            the last three, the dict also has the key `message`.

            - `timeout`: the task ran for too long.
            - `killed`: the child ran out of memory, crashed in native code, or sent an invalid reply.
            - `oversize`: the task exceeds `max_frame_bytes`.
            - `unwritable`: the task is not JSON.
            - `raised`: the entry raised an exception, or returned something that is not a dict, not JSON or too large.

        Raises:
            ConfigError: the timeout is not a positive number, or the entry cannot be run.
            UnreachableError: no supervisor could be started, or the supervisor died twice.
        """
        if not (timeout > 0 and math.isfinite(timeout)):
            raise ConfigError(f"timeout: {timeout} is not a number of seconds above 0", "timeout")
        try:
            body = dump(task)
        except (TypeError, ValueError, RecursionError) as error:
            return {"error": "unwritable", "message": f"the task is not JSON: {error}"}
        if len(body) > self._config.max_frame_bytes:
            message = f"a task of {len(body)} bytes is over the limit of {self._config.max_frame_bytes}"
            return {"error": "oversize", "message": message}
        digest = blake2b(tenant.encode(), digest_size=len(NO_TENANT)).digest()
        kind = Kind.QUICK_TASK if stop_if_slow else Kind.TASK
        for _ in range(ATTEMPTS):
            connection = await self._get_connection()
            with contextlib.suppress(ConnectionResetError):
                return _read(await connection.ask(kind, body, timeout, digest))
        raise UnreachableError(
            f"the isolation supervisor died {ATTEMPTS} times while it ran a task", cause=Cause.ISOLATION_DOWN
        )

    async def stats(self) -> dict[str, int]:
        """Return the supervisor's process id (`pid`) and its counts (`Scheduler.stats`).

        Raises:
            UnreachableError: the supervisor died, or could not be started.
        """
        connection = await self._get_connection()
        try:
            stats: dict[str, int] = load(await connection.ask(Kind.STATS))
        except ConnectionResetError as error:
            raise UnreachableError("the isolation supervisor died", cause=Cause.ISOLATION_DOWN) from error
        return stats

    def close(self) -> None:
        """Close all connections. A later call of `run` or `stats` opens a new connection."""
        for loop, link in self._links.items():
            if link.connection is not None and not loop.is_closed():
                loop.call_soon_threadsafe(link.connection.abort)
        self._links.clear()

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
        raise UnreachableError("the isolation supervisor died right after it started", cause=Cause.ISOLATION_DOWN)

    def _connection(self) -> Connection:
        return Connection(self._config.max_frame_bytes)


def _read(body: bytes) -> Result:
    """Return the result in the body of a frame, or the error `killed` if the body is invalid."""
    try:
        result = load(body)
    except (ValueError, RecursionError):
        result = None
    return result if isinstance(result, dict) else {"error": "killed"}
