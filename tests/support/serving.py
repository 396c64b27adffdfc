"""Run a fake server with aiohttp: the main function of the scripts that tests start."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterable

from aiohttp import web


def run(routes: Iterable[web.RouteDef]) -> None:
    """Print the port, and serve until the process is killed; the port is the first argument, else a free one."""
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
