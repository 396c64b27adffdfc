"""One HTTP exchange whose reply is no HTTP."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from rewardstack.errors import ReplyError
from rewardstack.transport.http import open_session, send

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
