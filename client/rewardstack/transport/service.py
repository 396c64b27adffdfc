"""What sends a request: HTTP, a Ray actor, or something that records or counts requests."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

import aiohttp

from rewardstack.core.imports import import_lock
from rewardstack.transport.http import HttpService
from rewardstack.transport.message import Reply
from rewardstack_settings.kinds import RAY_SCHEME


class Service(Protocol):
    """Sends requests to the servers of a service; `Servers` chooses the server and decides about retries.

    Implementations: `http.HttpService`, `ray_actor.ActorService` and `recording.RecordingService`.
    """

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Coroutine[Any, Any, Reply]:
        """Send one request and return its reply, of any status.

        Args:
            method: `GET` or `POST`.
            url: absolute URL.
            body: JSON, or None.
            headers: HTTP headers in addition to the content type.

        Raises:
            ServiceError: there is no reply.
        """
        ...


def find_service(session: aiohttp.ClientSession, url: str) -> Service:
    """Return what sends requests to a URL: HTTP with this session, or a Ray actor."""
    if not url.startswith(RAY_SCHEME):
        return HttpService(session)
    with import_lock:
        from rewardstack.transport.ray_actor import ActorService
    return ActorService()
