"""Requests under way, and their inputs that wait for the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.embedding.tei_python.bodies import Input
from services.embedding.tei_python.tokenization import Encoding
from services.embedding.tei_python.vectors import Vectors


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
