"""gunicorn's threaded worker, protected against slow clients.

gunicorn's own worker assigns a thread to each new connection, and its event loop can block on a slow client. Here, the
event loop never blocks. A connection gets a thread when its request is complete, when `BUFFER` bytes have arrived, or
`BODY_SECONDS` after its head has arrived. The thread reads the rest of the body and requires a minimum rate (module
`connection`). Liveness requests (`GET /health`) have their own thread, so they do not wait for other requests.
"""

from __future__ import annotations

import errno
import math
import re
import sys
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from rewardstack.errors import ConfigError, OverloadError
from rewardstack_rules.http.connection import ClientSlots, PacedSocket, linger
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.threads import Threads
from rewardstack_rules.logs import log_failed_start

HEAD_SECONDS = 10.0
"""Seconds within which the head of a request must arrive."""
BODY_SECONDS = 0.25
"""Seconds for which a connection waits for the body without a thread, after the head has arrived."""
PAUSE_SECONDS = 1.0
"""Seconds for which no connections are accepted after the process ran out of file descriptors."""
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
        """Monotonic time at which a thread starts to read the body; 0 if no start is scheduled."""

    def is_ready(self) -> bool:
        """Read the bytes that have arrived; return whether a thread should handle the request now.

        This is the case if the request is complete, if the buffer is full, or if the client waits for `100 Continue` or
        has closed the connection.
        """
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

    def restore_buffered(self) -> None:
        """Take back the bytes of the next request from gunicorn's parser, which may have read some already."""
        if self.parser is not None:
            self.add(self.parser.unreader.take_buffered())

    def is_liveness(self) -> bool:
        """Return whether this is a complete liveness request (`GET /health`)."""
        return self.head.startswith(LIVENESS) and self._has_body()

    def begin(self) -> None:
        """Pass the bytes that have arrived to gunicorn's parser. Runs in the thread that answers the request.

        A liveness request never waits for its client, because a single thread answers all liveness requests.
        """
        self.sock.start_request(len(self.received), may_wait=not self.is_liveness())
        self.init()
        self.parser.unreader.unread(bytes(self.received))
        self.received.clear()
        self.head, self.due = b"", 0.0

    def close(self, graceful: bool = False) -> None:
        """Close the connection immediately, even if `graceful` is True.

        A graceful close would read the rest of a refused request, and block the event loop. The module `connection` has
        already read that rest.
        """
        self.due = 0.0
        super().close()

    def _has_body(self) -> bool:
        """Return whether the body is complete, or the client waits for `100 Continue`."""
        if EXPECTS.search(self.head):
            return True
        if CHUNKED.search(self.head):
            return self.received.endswith(LAST_CHUNK)
        length = LENGTH.search(self.head)
        return length is None or len(self.received) - len(self.head) >= int(length[1])


class Worker(ThreadWorker):
    """A threaded worker whose event loop reads requests without blocking."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.threads = Threads(self.cfg.threads)
        self.slots = ClientSlots(self.cfg.threads, self.threads.lend_thread)
        self.waiting: deque[Connection] = deque()
        """Connections whose head arrived before the body, oldest first. Entries with `due` 0 no longer wait."""
        self.liveness_pool = ThreadPoolExecutor(1)
        self.accept_after = 0.0
        """Monotonic time before which no connections are accepted."""

    def load_wsgi(self) -> None:
        """Create the application. On ConfigError, log one line, and exit with gunicorn's status for a failed start."""
        try:
            super().load_wsgi()
        except ConfigError as error:
            log_failed_start(self.log, error)
            sys.exit(Arbiter.WORKER_BOOT_ERROR)

    def get_thread_pool(self) -> Threads:
        """Return the threads that answer requests."""
        return self.threads

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting connections. During a pause (`PAUSE_SECONDS`), do not start."""
        super().set_accept_enabled(enabled and time.monotonic() >= self.accept_after)

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
            self.accept_after = time.monotonic() + PAUSE_SECONDS
            self.set_accept_enabled(False)
            return
        self.nr_conns += 1
        self._wait_for_request(Connection(self.cfg, PacedSocket(client, self.slots), address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Handle the first bytes of the next request on a kept-alive connection."""
        if conn.is_ready():
            super().on_client_socket_readable(conn, client)
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._wait_for_request(conn)
        self._wait_for_body(conn)

    def on_pending_socket_readable(self, conn: Connection, client: Any) -> None:
        """Handle data of a request that is not complete yet."""
        if conn.is_ready():
            conn.due = 0.0
            super().on_pending_socket_readable(conn, client)
        else:
            self._wait_for_body(conn)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Handle events, then start threads for connections whose body has not arrived within `BODY_SECONDS`."""
        super().wait_for_and_dispatch_events(min(timeout, BODY_SECONDS) if self.waiting else timeout)
        while self.waiting and self.waiting[0].due < time.monotonic():
            conn = self.waiting.popleft()
            if conn.due:
                conn.due = 0.0
                super().on_pending_socket_readable(conn, conn.sock)

    def enqueue_req(self, conn: Connection) -> None:
        """Queue a request for a thread."""
        threads = self.liveness_pool if conn.is_liveness() else self.tpool
        answered = threads.submit(self.handle, conn)
        answered.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: Connection, done: Future[Any]) -> None:
        """End a request, and wait for the connection's next request, whose first bytes may already have arrived."""
        conn.restore_buffered()
        super().finish_request(conn, done)
        if conn.received and self.keepalived_conns and self.keepalived_conns[-1] is conn:
            self.on_client_socket_readable(conn, conn.sock)

    def handle(self, conn: Connection) -> Any:
        """Answer a request, in a thread."""
        conn.begin()
        return super().handle(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Log and end a request that failed or is not HTTP. Do nothing if it failed because of slow clients."""
        if not isinstance(exc, (ApiError, OverloadError)):
            super().handle_error(req, client, addr, exc)
            linger(client)

    def _wait_for_request(self, conn: Connection) -> None:
        conn.timeout = time.monotonic() + HEAD_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _wait_for_body(self, conn: Connection) -> None:
        if conn.head and not conn.due:
            conn.due = time.monotonic() + BODY_SECONDS
            conn.timeout = math.inf  # the head arrived in time
            self.waiting.append(conn)
