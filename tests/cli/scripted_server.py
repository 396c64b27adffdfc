"""An HTTP server that answers from a script, for what a real reward server cannot be made to answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.threaded import serving


@dataclass
class Answer:
    """One reply: a JSON value or raw bytes, after a delay in seconds; `cut` closes the connection instead."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    delay: float = 0.0


GATEWAY = "/gateway/health"
"""What the client asks to find out whether it speaks to a gateway; the server is none."""


@dataclass
class Scripted:
    """What a test sees of the server: its URL, what it was asked, and by how many connections."""

    url: str
    connections: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def scripted_server(*answers: Answer, **by_path: Answer) -> Iterator[Scripted]:
    """Answers with `answers` in turn, the last one for good, or by the last part of the path."""
    script = list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            seen.connections += 1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_json = self.headers.get("Content-Type") != "application/x-ndjson"
            read = json.loads(body or b"null") if is_json else [json.loads(line) for line in body.splitlines()]
            seen.asked.append({"path": self.path, "headers": dict(self.headers), "body": read})
            name = self.path.rpartition("/")[2]
            if self.path == GATEWAY and name not in by_path:
                answer = Answer("", 404)
            else:
                answer = by_path[name] if name in by_path else script.pop(0) if len(script) > 1 else script[0]
            time.sleep(answer.delay)
            if answer.cut:
                self.close_connection = True
                return
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for header, value in {**answer.headers, "Content-Length": str(len(data))}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            """Silence."""

    with serving(Handler) as address:
        seen = Scripted(address)
        yield seen
