"""The HTTP application: who may ask, what is read, and how a refusal looks."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from services.embedding.tei_python import bodies, replies
from services.embedding.tei_python.errors import TeiError
from services.embedding.tei_python.handlers import Handlers
from services.embedding.tei_python.json_reader import BodyError
from services.embedding.tei_python.shapes import Struct

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Action = Callable[[dict[str, Any], web.Request], Awaitable[web.Response]]

OPEN_PATHS = ("/health", "/ping", "/metrics")
"""Need no key; nor does `GET /`."""
OPENAI_PATHS = ("/embeddings", "/v1/embeddings")


def create(handlers: Handlers, api_key: str | None, payload_limit: int) -> web.Application:
    """The application.

    Args:
        handlers: of its routes.
        api_key: what clients must send as a bearer token; None for an open server.
        payload_limit: bytes of a body.
    """
    posts: dict[str, tuple[Struct, Action]] = {
        **dict.fromkeys(("/embed", "/", "/invocations"), (bodies.EMBED, handlers.embed)),
        **dict.fromkeys(OPENAI_PATHS, (bodies.OPENAI, handlers.openai)),
        "/similarity": (bodies.SIMILARITY, handlers.similarity),
        "/tokenize": (bodies.TOKENIZE, handlers.tokenize),
        "/decode": (bodies.DECODE, handlers.decode),
    }
    app = web.Application(middlewares=[_refusing(handlers, api_key)], client_max_size=payload_limit)
    app.add_routes([web.post(path, _reading(struct, action)) for path, (struct, action) in posts.items()])
    app.add_routes([web.get(path, handlers.health) for path in ("/", "/health", "/ping")])
    app.add_routes([web.get("/info", handlers.show_info), web.get("/metrics", handlers.show_metrics)])
    return app


def _refusing(handlers: Handlers, api_key: str | None) -> Any:
    """Checks the key and gives every refusal TEI's form."""
    expected = f"Bearer {api_key}".encode()

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if api_key is not None and not _open(request):
            given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if not hmac.compare_digest(given, expected):
                return web.Response(status=401)
        try:
            return await handler(request)
        except TeiError as error:
            if error.failure:
                handlers.metrics.failed(error.failure)
            return _error(error, request.path in OPENAI_PATHS)
        except BodyError as error:
            return web.Response(status=error.status, text=str(error))
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text="Failed to buffer the request body: length limit exceeded")
        except web.HTTPException as error:  # no such route, or not with this method
            allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
            return web.Response(status=error.status, headers=allow)

    return middleware


def _reading(struct: Struct, action: Action) -> Handler:
    """A handler that reads the body and acts on its fields."""

    async def handler(request: web.Request) -> web.Response:
        kind = request.content_type
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise BodyError(415, "Expected request with `Content-Type: application/json`")
        return await action(bodies.read(struct, await request.read()), request)

    return handler


def _open(request: web.Request) -> bool:
    return request.path in OPEN_PATHS or (request.path == "/" and request.method in ("GET", "HEAD"))


def _error(error: TeiError, openai: bool) -> web.Response:
    body: dict[str, Any] = {"error": str(error), "error_type": error.kind}
    if openai:
        body = {"message": str(error), "code": error.status, "type": error.kind}
    return web.Response(status=error.status, body=replies.dumps(body), content_type="application/json")
