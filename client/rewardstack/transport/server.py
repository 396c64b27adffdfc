"""One server of a service: its URL, its health, and its requests in flight."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from zlib import crc32

from rewardstack.cause import Cause
from rewardstack.core.deadline import HEADER
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.endpoints import VARIABLE
from rewardstack.errors import RejectedError, ServiceError, UnreachableError
from rewardstack.transport import timing
from rewardstack.transport.attempt import Attempt
from rewardstack.transport.faults import Fault
from rewardstack.transport.health import Health
from rewardstack.transport.http import display_url
from rewardstack.transport.message import AFFINITY, GATEWAY, HEALTH, Message, Reply, parse_reply
from rewardstack.transport.service import Service

UNAUTHORIZED = 401
"""HTTP status for an unknown API key."""


@lru_cache(maxsize=1024)
def replica_key(number: int) -> str:
    """Return a value of `REPLICA` that selects the replica at `number` modulo the number of replicas.

    This holds for up to 8 replicas, and some more counts: all divisors of 840.
    """
    return next(key for key in map(str, itertools.count()) if (nginx_hash(key) - number) % 840 == 0)


def nginx_hash(key: str) -> int:
    """Return the number to which nginx hashes a key, modulo the number of replicas."""
    return crc32(key.encode()) >> 16 & 0x7FFF


class Server:
    """One server of a service.

    Args:
        url: base URL.
        headers: HTTP headers of every request.
        service: sends requests.
        ceiling: maximum number of requests in flight.
        moves: whether the service may move to another address. Then a server that rejects the key counts as
            unreachable, because it may belong to another job that now uses the old address.

    Raises:
        SettingsError: the proxy that environment variables set for the URL is not an HTTP proxy.

    Attributes:
        health: what is known of the server.
        attempts: the attempts in flight, the oldest first.
        balancing: if the server is our gateway, how it selects the replica of a request: `least_conn` or `affinity`.
            Empty for a server that is no gateway, as far as is known.
        alive_at: when the server last answered anything, on `time.monotonic()`.
        answered_at: when an attempt last ended with an answer or a lost connection.
        timeout_cause: why the last request timed out; empty if a request has succeeded since.
    """

    def __init__(self, url: str, headers: Mapping[str, str], service: Service, ceiling: int, *, moves: bool) -> None:
        self.url = url
        self.shown_url = display_url(url)
        self.health = Health(ceiling)
        self.attempts: dict[Attempt, None] = {}
        self.balancing = ""
        self.is_unanswered = False
        self.alive_at = self.answered_at = 0.0
        self.timeout_cause = ""
        self.probing: asyncio.Task[None] | None = None
        self._headers = headers
        self._service = service
        self._moves = moves

    def cause(self) -> str:
        """Return the current failure, and how long requests have waited for an answer.

        If there is neither, return why the last request timed out; empty if a request has succeeded since.
        """
        causes = [self.health.describe_failure(), self._describe_silence() if self.attempts else ""]
        return "; ".join(filter(None, causes)) or self.timeout_cause

    def known_cause(self) -> Cause:
        """Return the cause of the current failure; `TIMEOUT` if there is none."""
        return Cause.TIMEOUT if self.health.error is None else self.health.error.cause

    def _describe_silence(self) -> str:
        since = next(iter(self.attempts)).sent_at
        count, seconds = len(self.attempts), time.monotonic() - since
        requests = f"{count} request{'s' if count > 1 else ''} of this process"
        if self.alive_at >= since:
            return f"{self.shown_url} is up and is working on {requests}, the oldest sent {seconds:.1f} s ago"
        accepted = "accepted the connection and has" if seconds > timing.CONNECT_TIMEOUT else "has"
        return f"{self.shown_url} {accepted} sent nothing for {seconds:.1f} s ({requests} in flight)"

    async def send(self, attempt: Attempt, seconds_left: float, extra_headers: Mapping[str, str] | None = None) -> Any:
        """Send an attempt's message and return its result; the attempt is registered while it is in flight.

        Raises:
            UnreachableError, OverloadError, RejectedError, ReplyError: the server cannot be reached or used.
            CancelledError: the attempt was interrupted, or its caller was cancelled.
        """
        if not self.attempts:
            self.answered_at = time.monotonic()
        self.attempts[attempt] = None
        self.is_unanswered = True
        message = attempt.message
        headers = {**self._headers, **message.headers, HEADER: str(max(1, int(seconds_left * 1000)))}
        if extra_headers is not None:
            headers.update(extra_headers)
        try:
            reply = await self._service.send(message.method, self.url + message.path, message.body, headers)
            self.answered_at = self.alive_at = time.monotonic()
            self.is_unanswered = False
            return self._read(reply, message)
        except ServiceError as error:
            self.answered_at = time.monotonic()
            self.is_unanswered = False
            raise self._without_other_server(error) from error.__cause__
        finally:
            del self.attempts[attempt]

    def _read(self, reply: Reply, message: Message) -> Any:
        self.balancing = reply.headers.get(GATEWAY, "")
        return parse_reply(reply, message.read)

    def first_replica(self, message: Message) -> int:
        """Return the number of the replica that gets a message without `REPLICA`; a random number if it is unknown."""
        affinity = message.headers.get(AFFINITY) if self.balancing == "affinity" else None
        return random.randrange(840) if affinity is None else nginx_hash(affinity)

    def _without_other_server(self, error: ServiceError) -> ServiceError:
        """Return the error, or an UnreachableError if the service may move and the server does not accept the key.

        In this case, the service has probably moved, and the server at its old address belongs to another job.
        """
        if not (self._moves and isinstance(error, RejectedError) and error.status == UNAUTHORIZED):
            return error
        moved = UnreachableError(f"{error}; the server does not accept the key in {VARIABLE}", cause=error.cause)
        moved.__cause__ = error
        return moved

    def succeed(self) -> None:
        """Record a success."""
        self.health.succeed()
        self.timeout_cause = ""

    def hang(self, error: ServiceError, since: float, *, ejects: bool, is_sure: bool) -> None:
        """Record that the server accepts requests but does not answer; interrupt its requests if that is sure.

        Args:
            error: what is known.
            since: when the server stopped answering, on `time.monotonic()`.
            ejects: whether other servers are left.
            is_sure: whether not even a probe was answered; otherwise, three such faults in a row open the circuit, and
                interrupt only requests that are as old as the one that was sent at `since`.
        """
        self.health.fail(Fault.DOWN, error, since, ejects=ejects, opens=is_sure)
        self.health.began_at(since)
        if self.health.is_open:
            for attempt in list(self.attempts):
                if is_sure or attempt.sent_at <= since + timing.MIN_STUCK:
                    attempt.interrupt(error)

    async def ask(self, message: Message, seconds: float) -> ServiceError | None:
        """Send a probe outside of all limits, and return its error; None for success."""
        headers = {} if message is HEALTH else {**self._headers, **message.headers}
        try:
            sending = self._service.send(message.method, self.url + message.path, message.body, headers)
            self._read(await run_with_timeout(seconds, sending), message)
        except asyncio.TimeoutError:
            return UnreachableError(
                f"{self.shown_url}: no answer to {message.method} {message.path} within {seconds:g} s",
                cause=Cause.TIMEOUT,
            )
        except ServiceError as error:
            return error
        return None
