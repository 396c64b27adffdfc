"""Call an ASGI web application in this process, without a server or a port.

https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Event = MutableMapping[str, Any]
App = Callable[[Event, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]


async def ask(app: App, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Send a request to an application and return the status and the body of the reply.

    Args:
        app: the application.
        method: `GET` or `POST`.
        path: the path of the URL, without a query.
        body: a JSON document, or empty.
    """
    status, parts, sent = 500, bytearray(), False

    async def receive() -> Event:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # never report a disconnect; a caller that disconnects cancels this coroutine
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: Event) -> None:
        nonlocal status
        if event["type"] == "http.response.start":
            status = event["status"]
        elif event["type"] == "http.response.body":
            parts.extend(event.get("body", b""))

    await app(_scope(method, path), receive, send)
    return status, bytes(parts)


def _scope(method: str, path: str) -> Event:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"ray"), (b"content-type", b"application/json")],
        "client": ("ray", 0),
        "server": ("ray", 0),
    }
