"""A fake judge that answers every chat request after the same delay, including requests for rubric criteria.

    python benchmarks/slow_judge.py DELAY [RECORD]

Prints its port. DELAY is in seconds. Writes the bodies of all chat requests to the file RECORD, one per line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import BinaryIO

VERDICT = 0.5
END = b"\r\n\r\n"
LENGTH = b"content-length:"


def reply_with(payload: object) -> bytes:
    """Return a complete HTTP response with a JSON body."""
    body = json.dumps(payload).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d%s%s" % (len(body), END, body)


def completion(content: str) -> bytes:
    """Return a complete HTTP response to a chat request."""
    message = {"role": "assistant", "content": content}
    return reply_with({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


VERDICTS = completion(f"REWARD: {VERDICT:.3f}")
CRITERION = b'"enum": ["no", "yes"]'
"""Appears in the JSON schema of a rubric's reply once for each criterion."""
MODELS = reply_with({"object": "list", "data": [{"id": "slow", "root": "slow"}]})


class Connection(asyncio.Protocol):
    """A client connection, on which requests arrive one after another.

    Args:
        delay: seconds before a verdict.
        record: file for the request bodies; None to discard them.
    """

    def __init__(self, delay: float, record: BinaryIO | None) -> None:
        self._delay = delay
        self._record = record
        self._read = b""
        self._send: Callable[[bytes], None] = lambda data: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._send = transport.write

    def connection_lost(self, _: Exception | None) -> None:
        self._send = lambda data: None

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(END)
        if not end or len(body) < _length(head):
            return
        self._read = b""
        if not head.startswith(b"POST"):
            self._send(MODELS)
            return
        if self._record is not None:
            self._record.write(body + b"\n")
        asyncio.get_running_loop().call_later(self._delay, self._answer, body.count(CRITERION))

    def _answer(self, criteria: int) -> None:
        """Send the verdict; for a rubric, say that every other criterion is met."""
        lines = (f"{at}: {'yes' if at % 2 else 'no'}" for at in range(1, criteria + 1))
        self._send(completion("\n".join(lines)) if criteria else VERDICTS)


def _length(head: bytes) -> int:
    at = head.lower().find(LENGTH)
    return 0 if at < 0 else int(head[at + len(LENGTH) :].partition(b"\r\n")[0])


async def serve(delay: float, record: BinaryIO | None) -> None:
    """Listen on a free port, print it, and serve until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(delay, record), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        with open(sys.argv[2], "wb", buffering=0) as file:
            asyncio.run(serve(float(sys.argv[1]), file))
    else:
        asyncio.run(serve(float(sys.argv[1]), None))
