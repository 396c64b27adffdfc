"""One HTTP exchange whose reply is no HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from rewardstack.errors import ReplyError
from rewardstack.transport import timing
from rewardstack.transport.http import DaemonResolver, open_session, send

SECRET = "sesame"


async def fault(reply: bytes) -> ReplyError:
    """What a reply of these bytes becomes."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_session() as session:
        with pytest.raises(ReplyError) as raised:
            await send(session, "GET", f"http://127.0.0.1:{port}/v1/models?key={SECRET}", None, {})
    return raised.value


@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"])
def test_malformed(reply: bytes) -> None:
    """A reply that is no HTTP is an error that says so; neither it nor its traceback holds the query."""
    error = asyncio.run(fault(reply))
    assert "/v1/models: 400, " in str(error) and SECRET not in str(error)
    assert SECRET not in "".join(traceback.format_exception(error))


def no_answer(*_: Any, **__: Any) -> Any:
    """What happens while the name servers are away, once the system gives up."""
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def hangs(*_: Any, **__: Any) -> Any:
    """What happens until then."""
    threading.Event().wait(3600)


def denied(*_: Any, **__: Any) -> Any:
    """What name servers say of a name that they do not have."""
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def resolved_twice(monkeypatch: pytest.MonkeyPatch, later: Callable[..., Any]) -> list[str]:
    """The addresses of a name that was resolved before, when it is resolved later."""
    resolver = DaemonResolver()
    await resolver.resolve("localhost", 80)
    monkeypatch.setattr(socket, "getaddrinfo", later)
    return [one["host"] for one in await resolver.resolve("localhost", 80)]


@pytest.mark.parametrize("outage", [no_answer, hangs])
def test_name_servers_are_away(monkeypatch: pytest.MonkeyPatch, outage: Callable[..., Any]) -> None:
    """A name has its last known addresses while name servers do not answer, and is not waited for long."""
    monkeypatch.setattr(timing, "LOOKUP_TIMEOUT", 0.1)  # expires where the look-up hangs
    assert asyncio.run(resolved_twice(monkeypatch, outage)) == ["127.0.0.1"]


def test_a_name_that_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that name servers do not have any more has no address; nor has one that was never found."""
    monkeypatch.setattr(timing, "LOOKUP_TIMEOUT", 60.0)
    with pytest.raises(socket.gaierror):
        asyncio.run(resolved_twice(monkeypatch, denied))
    monkeypatch.setattr(socket, "getaddrinfo", no_answer)
    with pytest.raises(socket.gaierror):
        asyncio.run(DaemonResolver().resolve("localhost", 80))
