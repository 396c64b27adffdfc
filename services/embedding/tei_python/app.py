"""The HTTP application: who may ask, what each route does (router/src/http/server.rs of TEI's release 1.9), and how a
refusal looks."""

from __future__ import annotations

import asyncio
import hmac
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from services.embedding.tei_python import bodies, replies
from services.embedding.tei_python.bodies import Batch, Input
from services.embedding.tei_python.engine import Ask, Engine, Spent
from services.embedding.tei_python.errors import BodyError, EmptyError, TeiError, UnhealthyError, ValidationError
from services.embedding.tei_python.metrics import Metrics
from services.embedding.tei_python.replies import Vectors
from services.embedding.tei_python.tokenization import Tokenization

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Action = Callable[[Any, web.Request], Awaitable[web.Response]]

OPEN_PATHS = ("/health", "/ping", "/metrics")
"""Need no key; nor does `GET /`."""
OPENAI_PATHS = ("/embeddings", "/v1/embeddings")
DEADLINE = "X-Request-Deadline-Ms"
"""Milliseconds that the sender will still wait; what nobody waits for is not embedded."""
PROBE_SECONDS = 30.0


def create(handlers: Handlers, api_key: str | None, payload_limit: int) -> web.Application:
    """The application.

    Args:
        handlers: of its routes.
        api_key: what clients must send as a bearer token; None for an open server.
        payload_limit: bytes of a body.
    """
    posts: dict[str, tuple[type[bodies.Body], Action]] = {
        **dict.fromkeys(("/embed", "/", "/invocations"), (bodies.Embed, handlers.embed)),
        **dict.fromkeys(OPENAI_PATHS, (bodies.OpenAI, handlers.openai)),
        "/similarity": (bodies.Similarity, handlers.similarity),
        "/tokenize": (bodies.Tokenize, handlers.tokenize),
        "/decode": (bodies.Decode, handlers.decode),
    }
    app = web.Application(middlewares=[_refusing(handlers.metrics, api_key)], client_max_size=payload_limit)
    app.add_routes([web.post(path, _reading(kind, action)) for path, (kind, action) in posts.items()])
    app.add_routes([web.get(path, handlers.health) for path in ("/", "/health", "/ping")])
    app.add_routes([web.get("/info", handlers.show_info), web.get("/metrics", handlers.show_metrics)])
    return app


@dataclass(frozen=True)
class Handlers:
    """The routes' actions. Each takes a body's fields and raises TeiError where the request is refused.

    Args:
        engine: that embeds.
        tokenization: of its model.
        metrics: in which they count.
        info: what `/info` says.
        hardware: what replies name as their `x-compute-type`.
    """

    engine: Engine
    tokenization: Tokenization
    metrics: Metrics
    info: dict[str, Any]
    hardware: str

    async def embed(self, body: bodies.Embed, request: web.Request) -> web.Response:
        """`/embed`"""
        vectors, headers = await self._embed(body.inputs, request, body, body.dimensions, body.normalize)
        return _json(replies.embeddings(vectors), headers)

    async def similarity(self, body: bodies.Similarity, request: web.Request) -> web.Response:
        """`/similarity`"""
        if not body.inputs.sentences:
            raise EmptyError("`inputs.sentences` is empty: send at least one")
        texts = Batch([body.inputs.source_sentence, *body.inputs.sentences])
        how = body.parameters or bodies.Parameters()
        vectors, headers = await self._embed(texts, request, how, None, normalize=False)
        return _json(replies.dumps(replies.cosines(vectors)), headers)

    async def openai(self, body: bodies.OpenAI, request: web.Request) -> web.Response:
        """`/v1/embeddings`"""
        vectors, headers = await self._embed(body.input, request, bodies.Parameters(), body.dimensions, normalize=True)
        tokens, name = int(headers["x-compute-tokens"]), str(self.info["served_model_name"])
        return _json(replies.openai_embeddings(vectors, body.encoding_format, name, tokens), headers)

    async def tokenize(self, body: bodies.Tokenize, _: web.Request) -> web.Response:
        """`/tokenize`"""
        texts, how = self._checked(body.inputs, "inputs"), (body.add_special_tokens, body.prompt_name)
        shown = await asyncio.to_thread(lambda: [self.tokenization.tokenize(text, *how) for text in texts])
        return _json(replies.dumps(shown))

    async def decode(self, body: bodies.Decode, _: web.Request) -> web.Response:
        """`/decode`"""
        lists, skip = self._checked(body.ids, "ids"), body.skip_special_tokens
        texts = await asyncio.to_thread(lambda: [self.tokenization.decode(ids, skip) for ids in lists])
        return _json(replies.dumps(texts))

    async def health(self, _: web.Request) -> web.Response:
        """`/health`: a model that failed is tried again."""
        if not self.engine.well:
            try:
                await self.engine.embed(Ask(["."], True, "right", None, None, time.monotonic() + PROBE_SECONDS))
            except TeiError as error:
                raise UnhealthyError(f"unhealthy: {error}") from None
        return web.Response()

    async def show_info(self, _: web.Request) -> web.Response:
        """`/info`"""
        return _json(replies.dumps(self.info))

    async def show_metrics(self, _: web.Request) -> web.Response:
        """`/metrics`"""
        return web.Response(text=self.metrics.text())

    async def _embed(
        self,
        inputs: str | list[Any],
        request: web.Request,
        how: bodies.Parameters,
        dimensions: int | None,
        normalize: bool,
    ) -> tuple[Vectors, dict[str, str]]:
        """The vectors of one input or a batch, and the headers of the reply."""
        began = time.monotonic()
        method = "batch" if isinstance(inputs, Batch) else "single"
        self.metrics.asked(method)
        batch = self._checked(inputs, "inputs")
        cut = bool(self.info["auto_truncate"] if how.truncate is None else how.truncate)
        ask = Ask(batch, cut, how.truncation_direction, how.prompt_name, dimensions, _deadline(request, began))
        vectors, spent = await self.engine.embed(ask)
        vectors = replies.finish(vectors, normalize, dimensions)
        seconds = (time.monotonic() - began, *(part / len(batch) for part in spent.parts))
        self.metrics.answered(method, seconds)
        return vectors, _headers(self.hardware, batch, spent, seconds)

    def _checked(self, inputs: Any, name: str) -> Sequence[Any]:
        """The inputs of a field that holds one or a batch, of which there must be some and not too many."""
        if not isinstance(inputs, Batch):
            return [inputs]
        if not inputs:
            raise EmptyError(f"`{name}` is empty: send at least one")
        if len(inputs) > (most := self.info["max_client_batch_size"]):
            said = (
                f"`{name}` has {len(inputs)} elements, and a request {most} at most (max_client_batch_size): send fewer"
            )
            raise ValidationError(said, "batch_size")
        return inputs


def _reading(kind: type[bodies.Body], action: Action) -> Handler:
    """A handler that reads the body and acts on its fields."""

    async def handler(request: web.Request) -> web.Response:
        sent = request.content_type
        if sent != "application/json" and not (sent.startswith("application/") and sent.endswith("+json")):
            raise BodyError(415, "the body must be JSON: send `Content-Type: application/json`")
        return await action(bodies.read(kind, await request.read()), request)

    return handler


def _refusing(metrics: Metrics, api_key: str | None) -> Any:
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
                metrics.failed(error.failure)
            return _refused(request, error)
        except web.HTTPRequestEntityTooLarge as error:
            return _refused(request, BodyError(413, f"{error.text} (payload_limit): send fewer or shorter inputs"))
        except web.HTTPException as error:  # no such route, or not with this method
            allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
            return web.Response(status=error.status, headers=allow)

    return middleware


def _open(request: web.Request) -> bool:
    return request.path in OPEN_PATHS or (request.path == "/" and request.method in ("GET", "HEAD"))


def _refused(request: web.Request, error: TeiError) -> web.Response:
    body: dict[str, Any] = {"error": str(error), "error_type": error.kind}
    if request.path in OPENAI_PATHS:
        body = {"message": str(error), "code": error.status, "type": error.kind}
    return web.Response(status=error.status, body=replies.dumps(body), content_type="application/json")


def _json(body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=headers)


def _deadline(request: web.Request, now: float) -> float:
    """When the sender of a request gives up; a header that is no number of milliseconds says nothing."""
    said = request.headers.get(DEADLINE, "")
    return now + int(said) / 1000 if said.isascii() and said.isdigit() and len(said) < 12 else math.inf


def _headers(hardware: str, batch: Sequence[Input], spent: Spent, seconds: Sequence[float]) -> dict[str, str]:
    total, tokenization, queue, inference = (str(int(part * 1000)) for part in seconds)
    return {
        "x-compute-type": hardware,
        "x-compute-time": total,
        "x-compute-characters": str(sum(len(part) for part in batch)),
        "x-compute-tokens": str(spent.tokens),
        "x-total-time": total,
        "x-tokenization-time": tokenization,
        "x-queue-time": queue,
        "x-inference-time": inference,
    }
