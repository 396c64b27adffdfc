"""Checks of the gateway: it refuses paths that it does not list, and requests without the service's key."""

from __future__ import annotations

import json
from typing import Any

from rewardstack_cli.deep.samples import ServiceName
from rewardstack_cli.deep.stack import NAMES, REQUEST_TIMEOUT, LeftOut, Stack, require
from rewardstack_cli.probes.http import Probed

HIDDEN: dict[ServiceName, str] = {
    "rules": "/unlisted",
    "judge": "/invocations",
    "embedding": "/decode",
    "reward-model": "/rerank",
}
"""A path of each service that the gateway does not list, although servers of judges and embeddings may have it."""
BY_GATEWAY = b"at the gateway"
"""Text of the gateway's own 404 page; the services' pages do not contain it."""
GUARDED: dict[ServiceName, tuple[str, Any]] = {
    "rules": ("/v1/score", {"items": []}),
    "judge": ("/v1/chat/completions", {"messages": []}),
    "embedding": ("/embed", {"inputs": "text"}),
    "reward-model": ("/classify", {"messages": []}),
}
"""A request to each service that requires the service's key: path and body."""


async def paths(stack: Stack) -> str:
    """Check that the gateway answers 404 for paths that it does not list, even if a service behind it has them."""
    servers = [(service, server) for service in stack.services for server in stack.servers(service)]
    guarded = [(service, server) for service, server in servers if await _is_gateway(server)]
    if not guarded:
        raise LeftOut("the servers are reached without a gateway")
    for service, server in guarded:
        reply = await server.reply(HIDDEN[service], timeout=REQUEST_TIMEOUT)
        fault = f"{service}: {HIDDEN[service]} answers {reply.status}, expected the gateway's own 404"
        require(reply.status == 404 and BY_GATEWAY in reply.data, fault)
    return "404 for what is not listed: " + ", ".join(dict.fromkeys(service for service, _ in guarded))


async def _is_gateway(server: Probed) -> bool:
    return (await server.reply("/gateway/health", timeout=REQUEST_TIMEOUT)).status == 200


async def keys(stack: Stack) -> str:
    """Check that a service with a key answers 401 to a wrong key."""
    guarded = [service for service in stack.services if any(server.has_key for server in stack.servers(service))]
    if not guarded:
        raise LeftOut("no key is set: " + ", ".join(NAMES[service].api_key for service in stack.services))
    for service in guarded:
        path, body = GUARDED[service]
        for server in stack.servers(service):
            reply = await server.reply(
                path, json.dumps(body).encode(), REQUEST_TIMEOUT, Authorization="Bearer not-the-key"
            )
            require(reply.status == 401, f"{service}: {path} answers {reply.status} to a wrong key, expected 401")
    return "401 to a wrong key: " + ", ".join(guarded)
