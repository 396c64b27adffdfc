"""A model server as the gateway sees one: `python model_upstream.py [PORT [ADDRESS]]` prints its port.

Every path answers with its path, port and host. `POST /_set {"mode": …, "key": …}` makes it break, hold its answers
until the mode changes, or ask for a key as vLLM does, under /v1 alone, and TEI for /info; `GET /_stats` tells how often
each path was asked.
"""

from __future__ import annotations

import asyncio
import collections
import socket
import sys
from typing import Any

from aiohttp import web

STATE: dict[str, Any] = {"mode": "ok", "key": "", "name": ""}
COUNTS: collections.Counter[str] = collections.Counter()
HOST = socket.gethostname()


async def answer(request: web.Request) -> web.StreamResponse:
    COUNTS[request.path] += 1
    while STATE["mode"] == "hold":
        await asyncio.sleep(0.02)
    mode = STATE["mode"]
    guarded = STATE["key"] and request.path.startswith(("/v1", "/info"))
    if guarded and request.headers.get("Authorization") != STATE["key"]:
        return web.json_response({"error": "Unauthorized"}, status=401)
    if mode.isdigit():
        return web.json_response({"error": f"mode {mode}"}, status=int(mode), headers={"Retry-After": "7"})
    if mode == "drop" and request.transport is not None:
        request.transport.close()
    if mode == "hang":
        await asyncio.sleep(3600)
    said = {"path": request.path, "port": STATE["name"], "host": HOST, "bytes": len(await request.read())}
    return web.json_response(said)


async def change(request: web.Request) -> web.StreamResponse:
    STATE.update(await request.json())
    return web.json_response(STATE)


async def stats(_: web.Request) -> web.StreamResponse:
    return web.json_response(COUNTS)


async def serve(port: str = "0", address: str = "127.0.0.1") -> None:
    app = web.Application(client_max_size=2**28)
    app.add_routes([web.post("/_set", change), web.get("/_stats", stats), web.route("*", "/{path:.*}", answer)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listener = socket.create_server((address, int(port)), backlog=2048)
    STATE["name"] = listener.getsockname()[1]
    await web.SockSite(runner, listener).start()
    print(STATE["name"], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
