"""Runs the model for all requests: tokenises in threads, batches across requests, drops what nobody waits for."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from services.embedding.tei_python.batches import Limits, choose
from services.embedding.tei_python.bodies import Input
from services.embedding.tei_python.errors import BackendError, ExpiredError, OverloadedError, TeiError, ValidationError
from services.embedding.tei_python.metrics import Metrics
from services.embedding.tei_python.replies import Vectors
from services.embedding.tei_python.tokenization import Encoding

log = logging.getLogger(__name__)


class Model(Protocol):
    """What the engine runs."""

    dimensions: int

    def embed(self, encodings: Sequence[Encoding]) -> Vectors:
        """The vectors of some inputs, of shape (inputs, dimensions)."""


class Tokenizer(Protocol):
    """What makes tokens of inputs."""

    def encode(
        self, inputs: Sequence[Input], truncate: bool, direction: str, prompt_name: str | None
    ) -> Sequence[Encoding | TeiError]:
        """The tokens of each input, or why it is refused."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request wants embedded.

    Args:
        inputs: texts or token ids.
        truncate: whether too long ones are cut.
        direction: the side that is cut off: left or right.
        prompt_name: of the prompt put before them; None for the default one.
        dimensions: that the vectors will be cut to; None for all.
        deadline: when its sender gives up, on `time.monotonic()`; infinite where it does not say.
    """

    inputs: Sequence[Input]
    truncate: bool
    direction: str
    prompt_name: str | None
    dimensions: int | None
    deadline: float


@dataclass(slots=True)
class Spent:
    """Where the time of a request went, in seconds, summed over its inputs; and its tokens."""

    tokenization: float = 0.0
    queue: float = 0.0
    inference: float = 0.0
    tokens: int = 0

    @property
    def parts(self) -> tuple[float, float, float]:
        """Of tokenizer, queue and model."""
        return self.tokenization, self.queue, self.inference


@dataclass(slots=True)
class Job:
    """A request under way.

    Args:
        ask: what it wants.
        done: gets its vectors, in order, and where its time went; cancelled where nobody waits.
        began: when it came, on `time.monotonic()`.
    """

    ask: Ask
    done: asyncio.Future[tuple[Vectors, Spent]]
    began: float
    rows: list[Vectors | None] = field(default_factory=list)
    missing: int = 0
    spent: Spent = field(default_factory=Spent)

    @property
    def awaited(self) -> bool:
        """Whether anyone still waits for it."""
        return not self.done.done() and time.monotonic() < self.ask.deadline


@dataclass(slots=True)
class Entry:
    """One input that waits for the model."""

    job: Job
    index: int
    encoding: Encoding
    queued: float


class Engine:
    """The model and its queue. Its methods belong to the event loop, in which it is made.

    Args:
        model: to run; a thread of its own does.
        tokenizer: of the model.
        limits: of one forward pass.
        permits: inputs that may be under way.
        workers: threads of the tokenizer.
        metrics: in which it counts.
    """

    def __init__(
        self, model: Model, tokenizer: Tokenizer, limits: Limits, permits: int, workers: int, metrics: Metrics
    ) -> None:
        self.well = True
        self._model = model
        self._tokenizer = tokenizer
        self._limits = limits
        self._permits = permits
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(workers, "tokenizer")
        self._waiting: list[Entry] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    async def embed(self, ask: Ask) -> tuple[Vectors, Spent]:
        """The vectors of a request's inputs.

        Returns:
            Array of shape (inputs, dimensions), not normalised, and where the time went.

        Raises:
            TeiError: the request is refused, or failed.
        """
        size = len(ask.inputs)
        if size > self._permits:
            raise OverloadedError(
                "as many inputs are under way as may be (max_concurrent_requests); send fewer or later"
            )
        self._permits -= size
        job = Job(ask, self._loop.create_future(), time.monotonic(), [None] * size, size)
        try:
            self._pool.submit(self._tokenise, job)
            patience = None if ask.deadline == math.inf else max(ask.deadline - time.monotonic(), 0)
            return await asyncio.wait_for(job.done, patience)
        except asyncio.TimeoutError:
            raise ExpiredError("the request's deadline has passed") from None
        finally:
            self._permits += size

    async def stop(self) -> None:
        """Ends the threads, after what they are at."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)
        self._pool.shutdown(cancel_futures=True)

    def _tokenise(self, job: Job) -> None:
        ask = job.ask
        if not job.awaited:
            return self._call(self._metrics.failed, "dropped", len(ask.inputs))
        try:
            encodings = self._tokenizer.encode(ask.inputs, ask.truncate, ask.direction, ask.prompt_name)
        except Exception as error:
            log.exception("The tokenizer failed")
            return self._fail([job], BackendError(f"the tokenizer failed: {error}"))
        queued = time.monotonic()
        entries = []
        for index, encoding in enumerate(encodings):
            if isinstance(encoding, TeiError):
                return self._fail([job], encoding)
            if (ask.dimensions or 0) > (most := self._model.dimensions):
                return self._fail([job], ValidationError(f"`dimensions` may be {most} at most", "validation"))
            entries.append(Entry(job, index, encoding, queued))
        job.spent.tokenization = (queued - job.began) * len(entries)
        with self._changed:
            self._waiting += entries
            self._metrics.queue_size = len(self._waiting)
            self._changed.notify()

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            begin = time.monotonic()
            try:
                vectors = self._model.embed([entry.encoding for entry in batch])
                if not np.isfinite(vectors).all():
                    raise ValueError("the model returned numbers that are not finite; try another --dtype")
            except Exception as error:
                log.exception("The model failed on %d inputs", len(batch))
                self.well = False
                self._fail([entry.job for entry in batch], BackendError(f"the model failed: {error}"))
                continue
            self.well = True
            self._call(self._deliver, batch, vectors, begin, time.monotonic() - begin)

    def _next(self) -> list[Entry] | None:
        """The inputs of the next forward pass; waits for them. None when the engine stops."""
        with self._changed:
            while True:
                awaited = [entry for entry in self._waiting if entry.job.awaited]
                if dropped := len(self._waiting) - len(awaited):
                    self._call(self._metrics.failed, "dropped", dropped)
                self._waiting = awaited
                if awaited:
                    break
                if self._stopping:
                    return None
                self._changed.wait()
            chosen = choose([len(entry.encoding.ids) for entry in awaited], self._limits)
            taken = set(chosen)
            self._waiting = [entry for index, entry in enumerate(awaited) if index not in taken]
            self._metrics.queue_size = len(self._waiting)
            return [awaited[index] for index in chosen]

    def _deliver(self, batch: Sequence[Entry], vectors: Vectors, begin: float, seconds: float) -> None:
        self._metrics.batch(len(batch), sum(len(entry.encoding.ids) for entry in batch))
        for entry, vector in zip(batch, vectors, strict=True):
            job, length = entry.job, len(entry.encoding.ids)
            job.rows[entry.index] = vector
            job.missing -= 1
            job.spent.queue += begin - entry.queued
            job.spent.inference += seconds
            job.spent.tokens += length
            parts = (entry.queued - job.began, begin - entry.queued, seconds)
            self._metrics.embedded(length, (sum(parts), *parts))
            if not job.missing and not job.done.done():
                job.done.set_result((np.stack([row for row in job.rows if row is not None]), job.spent))

    def _call(self, act: Callable[..., None], *arguments: object) -> None:
        """Has the event loop do it."""
        self._loop.call_soon_threadsafe(act, *arguments)

    def _fail(self, jobs: Sequence[Job], error: TeiError) -> None:
        self._call(self._set_error, jobs, error)

    def _set_error(self, jobs: Sequence[Job], error: TeiError) -> None:
        for job in jobs:
            if not job.done.done():
                job.done.set_exception(error)
