"""Check that the gateway refuses paths that its configuration does not list, and that services refuse a wrong key."""

from __future__ import annotations

import json
from typing import Any

from rewardstack_cli.deep.samples import ServiceName
from rewardstack_cli.deep.stack import NAMES, REQUEST_TIMEOUT, CheckSkippedError, Stack, require
from rewardstack_cli.probes.http import ProbedService

UNLISTED_PATHS: dict[ServiceName, str] = {
    "rules": "/unlisted",
    "judge": "/invocations",
    "embedding": "/decode",
    "reward-model": "/rerank",
}
"""For each service, a path that is not in the gateway's configuration; the server behind the gateway may have it."""
GATEWAY_404 = b"at the gateway"
"""Text of the gateway's own 404 page; the services' pages do not contain it."""
REQUESTS_WITH_KEY: dict[ServiceName, tuple[str, Any]] = {
    "rules": ("/v1/score", {"items": []}),
    "judge": ("/v1/chat/completions", {"messages": []}),
    "embedding": ("/embed", {"inputs": "text"}),
    "reward-model": ("/classify", {"messages": []}),
}
"""For each service, the path and body of a request that needs the service's key."""


async def check_paths(stack: Stack) -> str:
    """Check that the gateway answers 404 for paths that are not in its configuration, even if a service has them."""
    servers = [(service, server) for service in stack.services for server in stack.servers(service)]
    protected = [(service, server) for service, server in servers if await _is_gateway(server)]
    if not protected:
        raise CheckSkippedError("the servers are reached without a gateway")
    for service, server in protected:
        reply = await server.reply(UNLISTED_PATHS[service], timeout=REQUEST_TIMEOUT)
        fault = f"{service}: {UNLISTED_PATHS[service]} answers {reply.status}, expected the gateway's own 404"
        require(reply.status == 404 and GATEWAY_404 in reply.data, fault)
    return "404 for unlisted paths: " + ", ".join(dict.fromkeys(service for service, _ in protected))


async def _is_gateway(server: ProbedService) -> bool:
    return (await server.reply("/gateway/health", timeout=REQUEST_TIMEOUT)).status == 200


async def check_keys(stack: Stack) -> str:
    """Check that a service with a key answers 401 to a wrong key."""
    protected = [service for service in stack.services if any(server.has_key for server in stack.servers(service))]
    if not protected:
        raise CheckSkippedError("no key is set: " + ", ".join(NAMES[service].api_key for service in stack.services))
    for service in protected:
        path, body = REQUESTS_WITH_KEY[service]
        for server in stack.servers(service):
            reply = await server.reply(
                path, json.dumps(body).encode(), REQUEST_TIMEOUT, Authorization="Bearer not-the-key"
            )
            require(reply.status == 401, f"{service}: {path} answers {reply.status} to a wrong key, expected 401")
    return "401 to a wrong key: " + ", ".join(protected)
