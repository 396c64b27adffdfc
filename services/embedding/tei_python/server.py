"""Serve the embedding routes of TEI (Text Embeddings Inference) 1.9. A queue batches the inputs of all requests."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import math
import os
import re
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pydantic
from aiohttp import web
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import Field

from services.stack.ports import own_address

CPU_TOKENS = 2048  # maximum tokens of a forward pass on a CPU; larger passes are no faster per token
PADDING = 32  # if a forward pass may have N tokens, at most N/PADDING of them may be padding
HUNG_SECONDS = 600.0  # a forward pass that takes longer counts as hung
OPENAI = "/v1/embeddings"
THREADS = min(max((os.cpu_count() or 1) - 1, 1), 64)
INFO = ("max_concurrent_requests", "max_batch_tokens", "max_batch_requests", "max_client_batch_size", "auto_truncate")
log = logging.getLogger(__name__)
METRICS = CollectorRegistry()
_seconds = partial(Histogram, documentation="", registry=METRICS, buckets=[1.5**power * 1e-5 for power in range(1, 36)])
_counts = partial(Histogram, documentation="", registry=METRICS, buckets=[2.0**power for power in range(21)])
REQUESTS = Counter("te_request_count", "", ["method"], registry=METRICS)
FAILURES = Counter("te_request_failure", "", ["err"], registry=METRICS)
INPUTS = Counter("te_embed_count", "", registry=METRICS)
QUEUE_SIZE = Gauge("te_queue_size", "", registry=METRICS)
DURATION = _seconds("te_request_duration")
TOKENIZATION = _seconds("te_embed_tokenization_duration")
QUEUE = _seconds("te_embed_queue_duration")
INFERENCE = _seconds("te_embed_inference_duration")
INPUT_LENGTH = _counts("te_request_input_length")
BATCH_SIZE = _counts("te_batch_next_size")

Tokens = Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(fail_fast=True)]
Inputs = Annotated[
    str | Tokens | Annotated[list[str | Tokens], Field(fail_fast=True)],
    Field(union_mode="left_to_right", description="must be a text, a list of token ids, or a list of such inputs"),
]


class TeiError(Exception):
    """An error response: HTTP status, TEI's error type, and a message."""


class Embed(pydantic.BaseModel, strict=True):
    """The body of `/embed`."""

    inputs: Inputs
    truncate: bool | None = None
    truncation_direction: Literal["Left", "left", "Right", "right"] = "right"
    prompt_name: str | None = None
    normalize: bool = True
    dimensions: Annotated[int, Field(ge=1)] | None = None


class OpenAI(pydantic.BaseModel, strict=True):
    """The body of `/v1/embeddings`."""

    input: Inputs
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None


class Entry(NamedTuple):
    """A tokenized input in the queue, with the start time of its request and the time when the input was queued.

    The future is canceled when the request ends, so that the queue drops the input.
    """

    tokens: list[int]
    future: asyncio.Future[NDArray[np.float32]]
    started: float
    queued: float


class Server:
    """The HTTP application and the queue of inputs."""

    def __init__(self, model: Any, settings: Namespace) -> None:
        self._model, self._settings, self._key = model, settings, settings.api_key
        self._name = settings.served_model_name or model.info["model_id"]
        self._free_inputs, self._is_healthy, self._forward_started = settings.max_concurrent_requests, True, math.inf
        tokens = settings.max_batch_tokens if model.on_gpu else min(settings.max_batch_tokens, CPU_TOKENS)
        self._choose_batch = partial(choose_batch, tokens=tokens, inputs=settings.max_batch_requests)
        self._tokenizers, self._runner = ThreadPoolExecutor(THREADS), ThreadPoolExecutor(1)
        self._queue: list[Entry] = []
        self._arrived = asyncio.Event()
        QUEUE_SIZE.set_function(lambda: len(self._queue))
        self.application = web.Application(middlewares=[self._handle_request], client_max_size=settings.payload_limit)
        self.application.on_startup.append(self._start)
        self.application.add_routes([web.post("/embed", self._embed), web.post(OPENAI, self._openai)])
        self.application.add_routes([web.get("/health", self._health), web.get("/info", self._info)])
        self.application.add_routes([web.get("/metrics", self._metrics)])

    async def _embed(self, request: web.Request) -> web.Response:
        vectors, _ = await self._vectors(await _read(request, Embed))
        return web.Response(text=f"[{','.join(_json_rows(vectors))}]", content_type="application/json")

    async def _openai(self, request: web.Request) -> web.Response:
        body = await _read(request, OpenAI)
        vectors, tokens = await self._vectors(Embed.model_construct(inputs=body.input, dimensions=body.dimensions))
        rows = _json_rows(vectors)
        if body.encoding_format == "base64":
            rows = [f'"{base64.b64encode(row.astype("<f4").tobytes()).decode()}"' for row in vectors]
        data = ",".join(f'{{"object":"embedding","embedding":{row},"index":{n}}}' for n, row in enumerate(rows))
        rest = json.dumps({"model": self._name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})[1:]
        return web.Response(text=f'{{"object":"list","data":[{data}],{rest}', content_type="application/json")

    async def _vectors(self, body: Embed) -> tuple[NDArray[np.float64], int]:
        """Return the vectors for a request body, and the total number of tokens."""
        # A list of integers is a single input, and so is an empty list.
        is_batch = isinstance(body.inputs, list) and bool(body.inputs) and not isinstance(body.inputs[0], int)
        inputs: Any = body.inputs if is_batch else [body.inputs]
        REQUESTS.labels("batch" if is_batch else "single").inc()
        if len(inputs) > (most := self._settings.max_client_batch_size):
            message = f"the request has {len(inputs)} inputs, the limit is {most} (max_client_batch_size): send fewer"
            raise TeiError(422, "Validation", message)
        if len(inputs) > self._free_inputs:
            raise TeiError(429, "Overloaded", "too many inputs in flight (max_concurrent_requests): try again later")
        self._free_inputs -= len(inputs)
        loop, entries, started = asyncio.get_running_loop(), list[Entry](), time.monotonic()
        try:
            encode = partial(self._model.encode, body=body)
            tokens = await loop.run_in_executor(self._tokenizers, lambda: list(map(encode, inputs)))
            entries += [Entry(ids, loop.create_future(), started, time.monotonic()) for ids in tokens]
            self._queue += entries
            self._arrived.set()
            rows = await asyncio.gather(*(entry.future for entry in entries))
        finally:
            self._free_inputs += len(inputs)
            for entry in entries:
                entry.future.cancel()
        DURATION.observe(time.monotonic() - started)
        vectors = np.stack(rows)[:, : body.dimensions].astype(np.float64)
        if body.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
        return vectors, sum(map(len, tokens))

    async def _start(self, _: web.Application) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            self._arrived.clear()
            self._queue = [entry for entry in self._queue if not entry.future.done()]
            chosen = self._choose_batch([len(entry.tokens) for entry in self._queue])
            batch = [entry for index, entry in enumerate(self._queue) if index in chosen]
            self._queue = [entry for index, entry in enumerate(self._queue) if index not in chosen]
            await (self._forward(batch) if batch else self._arrived.wait())

    async def _forward(self, batch: Sequence[Entry]) -> None:
        """Run the model on a batch, and set the result or the error of each entry's future."""
        self._forward_started = started = time.monotonic()
        tokens, failure = [entry.tokens for entry in batch], None
        try:
            vectors = await asyncio.get_running_loop().run_in_executor(self._runner, self._model.embed, tokens)
            if not np.isfinite(vectors).all():
                raise ValueError("it returned numbers that are not finite; try another --dtype")
        except Exception as error:
            log.exception("the model failed on %d inputs", len(batch))
            failure = TeiError(424, "Backend", f"the model failed: {error}")
        self._forward_started, self._is_healthy, seconds = math.inf, failure is None, time.monotonic() - started
        BATCH_SIZE.observe(len(batch))
        INPUTS.inc(len(batch))
        for index, entry in enumerate(batch):
            INPUT_LENGTH.observe(len(entry.tokens))
            TOKENIZATION.observe(entry.queued - entry.started)
            QUEUE.observe(started - entry.queued)
            INFERENCE.observe(seconds)
            if not entry.future.done():
                entry.future.set_exception(failure) if failure else entry.future.set_result(vectors[index])

    async def _health(self, _: web.Request) -> web.Response:
        """Reply 503 while a forward pass hangs. After a failed forward pass, run another one as a test."""
        if time.monotonic() - self._forward_started > HUNG_SECONDS:
            raise TeiError(503, "Unhealthy", f"unhealthy: a forward pass has run for more than {HUNG_SECONDS:.0f} s")
        if not self._is_healthy:
            try:
                await asyncio.wait_for(self._vectors(Embed.model_construct(inputs=".")), 30.0)
            except (TeiError, asyncio.TimeoutError) as error:
                raise TeiError(503, "Unhealthy", f"unhealthy: {error.args[-1] if error.args else 'timeout'}") from None
        return web.Response()

    async def _info(self, _: web.Request) -> web.Response:
        info = {name: getattr(self._settings, name) for name in INFO} | self._model.info
        info |= {"served_model_name": self._name, "tokenization_workers": THREADS, "version": "1.9.3"}
        return web.json_response(info | {"sha": None, "docker_label": None})

    async def _metrics(self, _: web.Request) -> web.Response:
        body = generate_latest(METRICS).replace(b"_total", b"")  # TEI's counters do not have this suffix
        return web.Response(body=body, content_type="text/plain")

    @web.middleware
    async def _handle_request(self, request: web.Request, handler: Callable[..., Awaitable[Any]]) -> web.StreamResponse:
        """Check the key before reading the body, enforce the client's deadline, and format errors as TEI does."""
        sent = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        is_open = not self._key or request.path in ("/health", "/metrics")
        if not is_open and not hmac.compare_digest(sent, f"Bearer {self._key}".encode()):
            return web.Response(status=401)
        deadline = re.fullmatch("[0-9]{1,11}", request.headers.get("X-Request-Deadline-Ms", ""))
        try:
            return await asyncio.wait_for(handler(request), int(deadline[0]) / 1000 if deadline else None)
        except asyncio.CancelledError:
            FAILURES.labels("dropped").inc()
            raise
        except asyncio.TimeoutError:
            refusal = TeiError(504, "Dropped", "the request's deadline has passed")
        except web.HTTPRequestEntityTooLarge as error:
            refusal = TeiError(413, "Validation", f"{error.text} (payload_limit): send fewer or shorter inputs")
        except web.HTTPException as error:  # 404 and 405
            error.text = ""
            raise
        except TeiError as error:
            refusal = error
        status, kind, message = refusal.args
        FAILURES.labels(kind.lower()).inc()
        forms = {OPENAI: {"message": message, "code": status, "type": kind}}
        return web.json_response(forms.get(request.path, {"error": message, "error_type": kind}), status=status)


def choose_batch(lengths: Sequence[int], tokens: int, inputs: int | None) -> set[int]:
    """Choose the inputs of the next batch: the oldest input, and those closest to its length, within the limits.

    Args:
        lengths: number of tokens of each input in the queue, the oldest first.
        tokens: maximum number of tokens in the batch, with padding.
        inputs: maximum number of inputs in the batch; None for no limit.

    Returns:
        Indices of the chosen inputs.
    """
    chosen: set[int] = set()
    longest = total = 0
    for index in sorted(range(len(lengths)), key=lambda index: abs(lengths[index] - lengths[0])):
        new_longest, new_total = max(longest, lengths[index]), total + lengths[index]
        padded = new_longest * (len(chosen) + 1)
        if not chosen or (padded <= tokens and padded - new_total <= tokens / PADDING and len(chosen) != inputs):
            chosen.add(index)
            longest, total = new_longest, new_total
    return chosen


async def _read(request: web.Request, kind: type[pydantic.BaseModel]) -> Any:
    """Parse and validate the request body; raise TeiError if it is not JSON or has invalid fields."""
    if not re.fullmatch(r"application/(.+\+)?json", request.content_type):
        raise TeiError(415, "Validation", "the body must be JSON: send `Content-Type: application/json`")
    body = await request.read()
    try:  # int() rejects NaN and Infinity, and encode() rejects a lone surrogate
        value = json.loads(body.decode(), object_pairs_hook=_unique_members, parse_constant=int)
        json.dumps(value, ensure_ascii=False).encode() if rb"\u" in body else None
        return kind.model_validate(value)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = str((first["loc"] or ["body"])[0])
        expected = kind.model_fields[name].description if first["loc"] else "must be a JSON object"
        raise TeiError(422, "Validation", f"`{name}`: {expected or first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise TeiError(400, "Validation", f"the body is not JSON: {error}") from None


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise TeiError(422, "Validation", f"`{name[:100]}` is given twice in one object: leave one out")
        members[name] = value
    return members


def _json_rows(vectors: NDArray[Any]) -> list[str]:
    pattern = f"[{','.join(['%.9g'] * vectors.shape[1])}]"  # nine digits distinguish all float32 values
    return [pattern % tuple(row) for row in vectors.tolist()]


def serve(model: Any, settings: Namespace) -> None:
    """Serve until SIGTERM or SIGINT, then answer the requests in flight."""
    host = settings.hostname
    shown = own_address() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    ready = f"Ready: export EMBEDDING_SERVER_URL=http://{shown}:{settings.port}"
    run = partial(web.run_app, access_log=None, handler_cancellation=True, auto_decompress=False, backlog=1024)
    run(Server(model, settings).application, host=host, port=settings.port, print=lambda _: log.info(ready))
