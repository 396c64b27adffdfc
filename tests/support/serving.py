"""Serves a fake server's routes in a process of its own, which prints its port."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterable

from aiohttp import web


def run(routes: Iterable[web.RouteDef]) -> None:
    """Serves until it is ended, on the port that the command line names, else on any."""
    asyncio.run(_serve(routes, int(sys.argv[1]) if len(sys.argv) > 1 else 0))


async def _serve(routes: Iterable[web.RouteDef], port: int) -> None:
    app = web.Application(client_max_size=2**28)
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", port), backlog=2048)
    await web.SockSite(runner, listener).start()
    print(listener.getsockname()[1], flush=True)
    await asyncio.Event().wait()
