"""gunicorn's worker with threads, which a slow client cannot hold.

gunicorn gives a thread to each connection that is made, and waits in the loop that serves all of them for a client that
is to close one. Here a connection has a thread once the head of a request is there, and a moment later at the latest,
though its body may still be on its way; the rest is read at a least rate (`connection`). Nothing is waited for in the
loop. Who asks whether this process lives waits for none of those whose samples are being scored.
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
"""Seconds within which the head of a request must come."""
BODY_SECONDS = 0.25
"""Seconds that a body is waited for without a thread, once the head is there."""
PAUSE_SECONDS = 1.0
"""Seconds for which no connection is taken where the process has no file left for one."""
BUFFER = 2**16
"""Bytes of a request that are read without a thread."""
HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
EXPECTS = re.compile(rb"\r\nexpect:", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"
LIFE = b"GET /health "


class Connection(TConn):
    """A client's connection, and what has come of its next request."""

    def __init__(self, cfg: Any, sock: PacedSocket, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client, server)
        self.come = bytearray()
        self.head = b""
        """Empty until all of it is there."""
        self.due = 0.0
        """When a thread is to read the rest; 0 where that is not decided, or done."""

    def is_ready(self) -> bool:
        """Whether a thread has nothing to wait for, given what has come: all of a request, or the client's end."""
        ended = False
        if len(self.come) < BUFFER:
            try:
                data = self.sock.recv_now(BUFFER)
                ended = not data
                self.add(data)
            except BlockingIOError:
                pass  # nothing has come yet
            except OSError:
                ended = True
        return ended or len(self.come) >= BUFFER or (self.head != b"" and self._has_body())

    def add(self, data: bytes) -> None:
        """Something has come."""
        searched = max(0, len(self.come) - len(HEAD_END) + 1)
        self.come += data
        if not self.head and (end := self.come.find(HEAD_END, searched)) >= 0:
            self.head = bytes(self.come[: end + len(HEAD_END)])

    def take_early(self) -> None:
        """Takes back what gunicorn's parser has read of the next request."""
        if self.parser is not None:
            self.add(self.parser.unreader.take_buffered())

    def asks_for_life(self) -> bool:
        """Whether this is all of a request that asks whether the process lives."""
        return self.head.startswith(LIFE) and self._has_body()

    def begin(self) -> None:
        """Hands what has come to gunicorn's parser, in the thread that is to answer it.

        Who asks whether the process lives is not waited for: one thread serves all who do.
        """
        self.sock.begin(len(self.come), patient=not self.asks_for_life())
        self.init()
        self.parser.unreader.unread(bytes(self.come))
        self.come.clear()
        self.head, self.due = b"", 0.0

    def close(self, graceful: bool = False) -> None:
        """Closes it at once. What a refused client still sends has been read by then (`connection`)."""
        self.due = 0.0
        super().close()

    def _has_body(self) -> bool:
        """Whether all of the body is there, or its sender waits to be told to send it."""
        if EXPECTS.search(self.head):
            return True
        if CHUNKED.search(self.head):
            return self.come.endswith(LAST_CHUNK)
        length = LENGTH.search(self.head)
        return length is None or len(self.come) - len(self.head) >= int(length[1])


class Worker(ThreadWorker):
    """See above."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.threads = Threads(self.cfg.threads)
        self.places = Places(self.cfg.threads, self.threads.lent)
        self.waiting: deque[Connection] = deque()
        """Those whose head is there, oldest first, and some that have their thread by now."""
        self.for_life = ThreadPoolExecutor(1)
        self.accepts_at = 0.0

    def get_thread_pool(self) -> Threads:
        """What requests are answered in."""
        return self.threads

    def set_accept_enabled(self, enabled: bool) -> None:
        """Takes connections or does not; the loop asks for it in every round, and is not heard in a pause."""
        super().set_accept_enabled(enabled and time.monotonic() >= self.accepts_at)

    def accept(self, listener: Any) -> None:
        """Takes a connection, which then waits for its first request."""
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self.log.error("No connection is taken for %g s: %s (ulimit -n)", PAUSE_SECONDS, error)
            self.accepts_at = time.monotonic() + PAUSE_SECONDS
            self.set_accept_enabled(False)
            return
        self.nr_conns += 1
        self._await(Connection(self.cfg, PacedSocket(client, self.places), address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Something comes after an earlier request."""
        if conn.is_ready():
            super().on_client_socket_readable(conn, client)
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._await(conn)
        self._await_body(conn)

    def on_pending_socket_readable(self, conn: Connection, client: Any) -> None:
        """Something more comes."""
        if conn.is_ready():
            conn.due = 0.0
            super().on_pending_socket_readable(conn, client)
        else:
            self._await_body(conn)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Does what there is to do, and returns in time for what is due."""
        super().wait_for_and_dispatch_events(min(timeout, BODY_SECONDS) if self.waiting else timeout)
        while self.waiting and self.waiting[0].due < time.monotonic():
            conn = self.waiting.popleft()
            if conn.due:
                conn.due = 0.0
                super().on_pending_socket_readable(conn, conn.sock)

    def enqueue_req(self, conn: Connection) -> None:
        """Gives a request a thread, or a place in the queue for one."""
        threads = self.for_life if conn.asks_for_life() else self.tpool
        answered = threads.submit(self.handle, conn)
        answered.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: Connection, done: Future[Any]) -> None:
        """Has a connection wait for its next request, of which something may have come with the last one."""
        conn.take_early()
        super().finish_request(conn, done)
        if conn.come and self.keepalived_conns and self.keepalived_conns[-1] is conn:
            self.on_client_socket_readable(conn, conn.sock)

    def handle(self, conn: Connection) -> Any:
        """Answers a request, in a thread."""
        conn.begin()
        return super().handle(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Ends what could not be answered, or is no HTTP; a slow client is no fault to be logged."""
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
