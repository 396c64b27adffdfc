"""The reward server in a single process, without gunicorn (`run_reward_server` without `--workers`)."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from rewardstack_rules.http.app import create_app
from rewardstack_rules.http.connection import ClientSlots, PacedSocket, SlowClientError
from rewardstack_rules.http.status import deregister
from rewardstack_rules.process import return_memory
from rewardstack_rules.scoring.pools import start_pools
from rewardstack_rules.settings import Settings


class _Handler(WSGIRequestHandler):
    """Does not log requests, because `request_log` does, and does not report clients that are too slow."""

    def handle(self) -> None:
        """Answer the requests of a connection."""
        with contextlib.suppress(SlowClientError):
            super().handle()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


class _Server(ThreadedWSGIServer):
    """A server with a thread for each connection, so that slow clients need no limit."""

    slots = ClientSlots(sys.maxsize)

    def get_request(self) -> tuple[PacedSocket, Any]:
        """Accept a connection, and return it with the client's address."""
        client, address = super().get_request()
        return PacedSocket(client, self.slots), address


def serve(settings: Settings) -> None:
    """Serve requests in this process until SIGTERM or SIGINT.

    Raises:
        ConfigError: a setting is invalid.
    """
    return_memory()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    start_pools(settings)
    address = f"unix://{settings.socket}" if settings.socket else settings.host
    app = create_app(settings)
    server = _Server(address, settings.port, app, _Handler)
    server.log_startup()
    try:
        server.serve_forever()
    finally:
        server.server_close()
        deregister(app)
