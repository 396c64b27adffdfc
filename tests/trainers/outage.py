"""A reward server that refuses for a while: what a restart, or a judge that is away, looks like to a trainer."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count

from tests.support.threaded import serving

SECONDS = 60


class Refusing:
    """The way to a reward server, of which the first requests are answered with 503.

    Args:
        url: its own.
        asked: how many requests came, refused or not.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked = 0


@contextmanager
def refusing(url: str, times: int) -> Iterator[Refusing]:
    """A server in front of another.

    Args:
        url: of the reward server to which requests go on.
        times: requests that are refused before.
    """
    number = count()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            way.asked += 1
            if next(number) < times:
                self._answer(503, b'{"error": "no sample was scored: the judge is away"}')
                return
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(url + self.path, body or None, headers, method=self.command)
            with urllib.request.urlopen(request, timeout=SECONDS) as reply:
                self._answer(reply.status, reply.read())

        do_GET = do_POST

        def _answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    with serving(Handler) as address:
        way = Refusing(address)
        yield way
