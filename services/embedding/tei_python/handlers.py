"""What each route does (router/src/http/server.rs of TEI's release 1.9)."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from services.embedding.tei_python import replies
from services.embedding.tei_python.bodies import Batch, Input
from services.embedding.tei_python.engine import Engine
from services.embedding.tei_python.errors import EmptyError, TeiError, UnhealthyError, ValidationError
from services.embedding.tei_python.jobs import Ask, Spent
from services.embedding.tei_python.metrics import Metrics
from services.embedding.tei_python.tokenization import Tokenization
from services.embedding.tei_python.vectors import Vectors, cosines, finish

DEADLINE = "X-Request-Deadline-Ms"
"""Milliseconds that the sender will still wait; what nobody waits for is not embedded."""
PROBE_SECONDS = 30.0

log = logging.getLogger(__name__)


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

    async def embed(self, fields: dict[str, Any], request: web.Request) -> web.Response:
        """`/embed`"""
        vectors, headers = await self._embed(
            fields["inputs"],
            request,
            truncate=fields["truncate"],
            direction=fields["truncation_direction"],
            prompt_name=fields["prompt_name"],
            normalize=fields["normalize"],
            dimensions=fields["dimensions"],
        )
        return _json(replies.embeddings(vectors), headers)

    async def similarity(self, fields: dict[str, Any], request: web.Request) -> web.Response:
        """`/similarity`"""
        texts = fields["inputs"]
        if not texts["sentences"]:
            raise EmptyError("`inputs.sentences` cannot be empty")
        batch = Batch([texts["source_sentence"], *texts["sentences"]])
        self._check_size(batch)
        parameters = fields["parameters"] or {}
        vectors, headers = await self._embed(
            batch,
            request,
            truncate=parameters.get("truncate"),
            direction=parameters.get("truncation_direction", "right"),
            prompt_name=parameters.get("prompt_name"),
            normalize=False,
        )
        return _json(replies.dumps(cosines(vectors)), headers)

    async def openai(self, fields: dict[str, Any], request: web.Request) -> web.Response:
        """`/v1/embeddings`"""
        vectors, headers = await self._embed(fields["input"], request, dimensions=fields["dimensions"])
        tokens = int(headers["x-compute-tokens"])
        name = str(self.info["served_model_name"])
        return _json(replies.openai_embeddings(vectors, fields["encoding_format"], name, tokens), headers)

    async def tokenize(self, fields: dict[str, Any], _: web.Request) -> web.Response:
        """`/tokenize`"""
        inputs = fields["inputs"]
        if isinstance(inputs, Batch):
            self._check_batch(inputs, "inputs")
        texts = inputs if isinstance(inputs, Batch) else [inputs]
        how = (fields["add_special_tokens"], fields["prompt_name"])
        shown = await asyncio.to_thread(lambda: [self.tokenization.tokenize(text, *how) for text in texts])
        return _json(replies.dumps(shown))

    async def decode(self, fields: dict[str, Any], _: web.Request) -> web.Response:
        """`/decode`"""
        ids = fields["ids"]
        if isinstance(ids, Batch):
            self._check_batch(ids, "ids")
        lists = ids if isinstance(ids, Batch) else [ids]
        skip = fields["skip_special_tokens"]
        texts = await asyncio.to_thread(lambda: [self.tokenization.decode(part, skip) for part in lists])
        return _json(replies.dumps(texts))

    async def health(self, _: web.Request) -> web.Response:
        """`/health`: a model that failed is tried again."""
        if not self.engine.well:
            try:
                await self.engine.embed(Ask(["."], True, "right", None, None, time.monotonic() + PROBE_SECONDS))
            except TeiError:
                raise UnhealthyError("unhealthy") from None
        return web.Response()

    async def show_info(self, _: web.Request) -> web.Response:
        """`/info`"""
        return _json(replies.dumps(self.info))

    async def show_metrics(self, _: web.Request) -> web.Response:
        """`/metrics`"""
        return web.Response(text=self.metrics.text())

    async def _embed(
        self,
        inputs: Any,
        request: web.Request,
        *,
        truncate: bool | None = None,
        direction: str = "right",
        prompt_name: str | None = None,
        normalize: bool = True,
        dimensions: int | None = None,
    ) -> tuple[Vectors, dict[str, str]]:
        """The vectors of one input or a batch, and the headers of the reply."""
        began = time.monotonic()
        method = "batch" if isinstance(inputs, Batch) else "single"
        self.metrics.asked(method)
        if isinstance(inputs, Batch):
            self._check_batch(inputs, "inputs")
        batch: Sequence[Input] = inputs if isinstance(inputs, Batch) else [inputs]
        cut = bool(self.info["auto_truncate"] if truncate is None else truncate)
        ask = Ask(batch, cut, direction, prompt_name, dimensions, _deadline(request, began))
        vectors, spent = await self.engine.embed(ask)
        vectors = finish(vectors, normalize, dimensions)
        seconds = (time.monotonic() - began, *(part / len(batch) for part in spent.parts))
        self.metrics.answered(method, seconds)
        return vectors, _headers(self.hardware, batch, spent, seconds)

    def _check_batch(self, batch: Batch, name: str) -> None:
        if not batch:
            raise EmptyError(f"`{name}` cannot be empty")
        self._check_size(batch)

    def _check_size(self, batch: Batch) -> None:
        if len(batch) > (most := self.info["max_client_batch_size"]):
            raise ValidationError(f"batch size {len(batch)} > maximum allowed batch size {most}", "batch_size")


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
