"""gunicorn's threaded worker, protected against slow clients.

gunicorn's own worker assigns a thread to each new connection, and its event loop can block on a slow client. Here a
connection gets a thread when its request is complete, or `BODY_SECONDS` after its head has arrived. The thread reads
the rest of the body at a minimum rate (`connection`). The event loop never blocks. Liveness requests (`GET /health`) do
not wait for requests that are being scored.
"""

from __future__ import annotations

import errno
import math
import re
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from rewardstack.errors import OverloadError
from rewardstack_rules.http.connection import PacedSocket, Places, linger
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.threads import Threads

HEAD_SECONDS = 10.0
"""Seconds within which the head of a request must arrive."""
BODY_SECONDS = 0.25
"""Seconds to wait for the body without a thread, after the head has arrived."""
PAUSE_SECONDS = 1.0
"""Seconds without accepting connections after the process ran out of file descriptors."""
BUFFER = 2**16
"""Approximate number of bytes of a request that are read without a thread."""
HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
EXPECTS = re.compile(rb"\r\nexpect:", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"
LIVENESS = b"GET /health "


class Connection(TConn):
    """A client's connection, with the bytes of its next request that have arrived."""

    def __init__(self, cfg: Any, sock: PacedSocket, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client, server)
        self.received = bytearray()
        self.head = b""
        """The head of the next request; empty until it is complete."""
        self.due = 0.0
        """Monotonic time when a thread starts to read the body; 0 if no start is scheduled."""

    def is_ready(self) -> bool:
        """Read what has arrived; return whether the request is complete or the client has closed the connection."""
        ended = False
        if len(self.received) < BUFFER:
            try:
                data = self.sock.recv_now(BUFFER)
                ended = not data
                self.add(data)
            except BlockingIOError:
                pass  # nothing has arrived yet
            except OSError:
                ended = True
        return ended or len(self.received) >= BUFFER or (self.head != b"" and self._has_body())

    def add(self, data: bytes) -> None:
        """Append received bytes, and find the end of the head."""
        searched = max(0, len(self.received) - len(HEAD_END) + 1)
        self.received += data
        if not self.head and (end := self.received.find(HEAD_END, searched)) >= 0:
            self.head = bytes(self.received[: end + len(HEAD_END)])

    def take_early(self) -> None:
        """Take back the bytes of the next request that gunicorn's parser has already read."""
        if self.parser is not None:
            self.add(self.parser.unreader.take_buffered())

    def is_liveness(self) -> bool:
        """Return whether this is a complete liveness request (`GET /health`)."""
        return self.head.startswith(LIVENESS) and self._has_body()

    def begin(self) -> None:
        """Pass the bytes that have arrived to gunicorn's parser, in the thread that answers the request.

        Liveness requests must not wait for their client, because one thread serves all of them.
        """
        self.sock.begin(len(self.received), patient=not self.is_liveness())
        self.init()
        self.parser.unreader.unread(bytes(self.received))
        self.received.clear()
        self.head, self.due = b"", 0.0

    def close(self, graceful: bool = False) -> None:
        """Close the connection immediately; `connection` has already read the rest of a refused request."""
        self.due = 0.0
        super().close()

    def _has_body(self) -> bool:
        """Return whether the body is complete, or its sender waits for `100 Continue`."""
        if EXPECTS.search(self.head):
            return True
        if CHUNKED.search(self.head):
            return self.received.endswith(LAST_CHUNK)
        length = LENGTH.search(self.head)
        return length is None or len(self.received) - len(self.head) >= int(length[1])


class Worker(ThreadWorker):
    """The worker that the module describes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.threads = Threads(self.cfg.threads)
        self.places = Places(self.cfg.threads, self.threads.lent)
        self.waiting: deque[Connection] = deque()
        """Connections whose head was complete before the body, oldest first; some already have a thread."""
        self.liveness_pool = ThreadPoolExecutor(1)
        self.accepts_at = 0.0

    def get_thread_pool(self) -> Threads:
        """Return the threads that answer requests."""
        return self.threads

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting connections; during a pause (`PAUSE_SECONDS`), never start."""
        super().set_accept_enabled(enabled and time.monotonic() >= self.accepts_at)

    def accept(self, listener: Any) -> None:
        """Accept a connection, which then waits for its first request."""
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self.log.error(
                "not accepting connections for %g s: %s; raise ulimit -n",
                PAUSE_SECONDS,
                error,
            )
            self.accepts_at = time.monotonic() + PAUSE_SECONDS
            self.set_accept_enabled(False)
            return
        self.nr_conns += 1
        self._await(Connection(self.cfg, PacedSocket(client, self.places), address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Handle the first data of a connection after an earlier request."""
        if conn.is_ready():
            super().on_client_socket_readable(conn, client)
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._await(conn)
        self._await_body(conn)

    def on_pending_socket_readable(self, conn: Connection, client: Any) -> None:
        """Handle more data of a request."""
        if conn.is_ready():
            conn.due = 0.0
            super().on_pending_socket_readable(conn, client)
        else:
            self._await_body(conn)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Handle events, then start threads for connections whose body has not arrived within `BODY_SECONDS`."""
        super().wait_for_and_dispatch_events(min(timeout, BODY_SECONDS) if self.waiting else timeout)
        while self.waiting and self.waiting[0].due < time.monotonic():
            conn = self.waiting.popleft()
            if conn.due:
                conn.due = 0.0
                super().on_pending_socket_readable(conn, conn.sock)

    def enqueue_req(self, conn: Connection) -> None:
        """Assign a thread to a request, or queue it for one."""
        threads = self.liveness_pool if conn.is_liveness() else self.tpool
        answered = threads.submit(self.handle, conn)
        answered.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: Connection, done: Future[Any]) -> None:
        """Wait for the next request of a connection; part of it may already have arrived."""
        conn.take_early()
        super().finish_request(conn, done)
        if conn.received and self.keepalived_conns and self.keepalived_conns[-1] is conn:
            self.on_client_socket_readable(conn, conn.sock)

    def handle(self, conn: Connection) -> Any:
        """Answer a request, in a thread."""
        conn.begin()
        return super().handle(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Log and end a request that failed or is not HTTP; do nothing for a client that is too slow."""
        if not isinstance(exc, (ApiError, OverloadError)):
            super().handle_error(req, client, addr, exc)
            linger(client)

    def _await(self, conn: Connection) -> None:
        conn.timeout = time.monotonic() + HEAD_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _await_body(self, conn: Connection) -> None:
        if conn.head and not conn.due:
            conn.due = time.monotonic() + BODY_SECONDS
            conn.timeout = math.inf  # its head came in time
            self.waiting.append(conn)
