"""The reward server in a single process, without gunicorn.

`run_reward_server` uses it unless `--workers` or `RELOAD=on` is set.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, cast

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from rewardstack_rules.http.app import create_app
from rewardstack_rules.http.status import deregister
from rewardstack_rules.process import return_memory
from rewardstack_rules.scoring.pools import start_pools
from rewardstack_rules.settings import Settings


class _Handler(WSGIRequestHandler):
    """Answers requests. It does not log requests, because `request_log` does."""

    def run_wsgi(self) -> None:
        """Answer one request, and count it as in flight until it is answered."""
        with cast(_Server, self.server).count_request():
            super().run_wsgi()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


class _Server(ThreadedWSGIServer):
    """A server with a thread for each connection, so a slow client blocks only its own thread."""

    def __init__(self, *args: Any) -> None:
        self._in_flight = 0
        self._change = threading.Condition()
        super().__init__(*args)

    @contextlib.contextmanager
    def count_request(self) -> Iterator[None]:
        """Count a request as in flight within this context."""
        with self._change:
            self._in_flight += 1
        try:
            yield
        finally:
            with self._change:
                self._in_flight -= 1
                self._change.notify_all()

    def drain(self, seconds: float) -> None:
        """Wait until no request is in flight, for at most `seconds`."""
        with self._change:
            self._change.wait_for(lambda: not self._in_flight, seconds)


def serve(settings: Settings) -> None:
    """Serve requests in this process until SIGTERM or SIGINT; then finish those in flight, within `DRAIN_TIMEOUT`.

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
        server.drain(settings.drain_timeout)
        deregister(app)
