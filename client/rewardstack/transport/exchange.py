"""One exchange with a service, over HTTP or with a Ray actor, as its address says."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from rewardstack.core.imports import importing
from rewardstack.transport import http
from rewardstack.transport.reply import Reply, body_of
from rewardstack_settings.kinds import RAY_SCHEME


async def exchange(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> bytes:
    """The body of a 2xx reply to one request; arguments and errors are those of `send`, then of `body_of`."""
    return body_of(await send(session, method, url, body, headers))


async def send(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> Reply:
    """One request and its reply; arguments and errors are those of `http.send`, or of `ray_actor.send`."""
    if url.startswith(RAY_SCHEME):
        with importing:
            from rewardstack.transport import ray_actor
        return await ray_actor.send(method, url, body, headers)
    return await http.send(session, method, url, body, headers)
