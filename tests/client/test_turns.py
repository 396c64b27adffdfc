"""Those who wait for a place at an endpoint: who gives up is gone, and who is handed a place has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rewardstack.core.deadline import AttemptTimeout, Deadline, SharedDeadline
from rewardstack.errors import DeadlineError
from rewardstack.transport.http import HttpService, open_session
from rewardstack.transport.message import Message
from rewardstack.transport.servers import Call, Servers

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Get = Callable[[str, float], Coroutine[Any, Any, bytes]]


class Service:
    """A server that answers once `open` is set, sets `asked` when it is asked, and notes for which paths."""

    def __init__(self) -> None:
        self.open, self.asked = asyncio.Event(), asyncio.Event()
        self.paths: list[str] = []
        self.connections: list[asyncio.Task[Any] | None] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of a connection."""
        self.connections.append(asyncio.current_task())
        while request := await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            self.paths.append(request.split()[1].decode())
            self.asked.set()
            await self.open.wait()
            writer.write(REPLY)
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def one_place() -> AsyncIterator[tuple[Service, Servers, Get]]:
    """A service that is asked one thing at a time: itself, its `Servers`, and how to ask it with a timeout."""
    service = Service()
    server = await asyncio.start_server(service.answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        async with open_session() as session:
            pool = Servers([url], "", lambda _: HttpService(session), ceiling=1, max_retries=0)
            yield service, pool, lambda path, timeout: pool.ask(Message("GET", path), SharedDeadline(Deadline(timeout)))
            pool.close()
        await asyncio.gather(*filter(None, service.connections))


async def test_a_timeout_before_the_first_request() -> None:
    """A timeout that is too short for a single request says so, and what to do."""
    async with one_place() as (service, _, get):
        with pytest.raises(DeadlineError, match="the timeout ended before a request was sent; set a longer timeout"):
            await get("/hasty", 1e-9)  # expires
        assert not service.paths


async def test_who_gives_up_is_not_counted() -> None:
    """Those who gave up behind one that waits on are not among those of whom an error says that they wait."""
    async with one_place() as (service, pool, get):
        calls = [asyncio.create_task(get(f"/{at}", 60)) for at in range(3)]
        await service.asked.wait()
        assert "2 requests are queued" in pool.cause()
        hasty = [get("/hasty", 0.2) for _ in range(50)]  # expires
        errors = await asyncio.gather(*hasty, return_exceptions=True)
        assert all(isinstance(error, DeadlineError) for error in errors)
        assert "; 2 requests are queued" in pool.cause()
        assert any(str(error).endswith("; 2 requests are queued") for error in errors)  # the last one's
        service.open.set()
        assert await asyncio.gather(*calls) == [b"{}"] * 3
        assert "/hasty" not in service.paths


async def test_a_place_is_passed_on() -> None:
    """A place that is handed to a caller who is cancelled at that moment is the next one's."""
    async with one_place() as (service, pool, get):
        first, second, third = (asyncio.create_task(get(f"/{at}", 60)) for at in range(3))
        await service.asked.wait()
        next(iter(pool._waiting)).add_done_callback(lambda _: second.cancel())
        service.open.set()
        assert [b"{}"] * 2 == await asyncio.gather(first, third)
        assert second.cancelled() and not pool._describe_wait()


async def test_a_hedge_that_is_cancelled_before_it_starts() -> None:
    """A hedge that is cancelled before it starts gives its slot back."""
    async with one_place() as (_, pool, _):
        server = pool._servers[0]
        deadline = SharedDeadline(Deadline(60))
        call = Call(Message("GET", "/", is_hedged=True), deadline, AttemptTimeout(deadline, 0.0))
        hedge = pool._hedge(server, call)
        assert hedge is not None and server.health.in_flight == 1
        hedge.cancel()
        await asyncio.wait((hedge,))
        await asyncio.sleep(0)
        assert server.health.in_flight == 0
