"""The steps of one sample on its way to a score, as `rewardstack explain` shows them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rewardstack.core.json_types import plain
from rewardstack.core.wire import Record, score_record
from rewardstack.score import Score

MOST_DEEP = 32
"""Steps within steps that are read of a server's explanation."""


@dataclass(slots=True)
class Step:
    """One step: its name, its facts by name in plain JSON types, and the steps within it."""

    name: str
    facts: Record
    latency_ms: float = 0.0
    steps: list[Step] = field(default_factory=list)

    def record(self) -> Record:
        """Return the step as JSON; infinity and NaN, which JSON does not have, as text."""
        return {
            "step": self.name,
            "latency_ms": round(self.latency_ms, 3),
            "facts": _writable(plain(self.facts)),
            "steps": [step.record() for step in self.steps],
        }


@dataclass(slots=True)
class Explanation:
    """How one sample came to its score.

    Args:
        data_source: of the sample.
        score: as scoring gives it; None if scoring raises `error`.
        steps: in order.
        error: what is wrong with a setting or the request; empty if nothing is.
    """

    data_source: str
    score: Score | None
    steps: list[Step]
    error: str = ""

    def record(self) -> Record:
        """Return the explanation as JSON."""
        return {
            "data_source": self.data_source,
            "score": None if self.score is None else score_record(self.score),
            "error": self.error,
            "steps": [step.record() for step in self.steps],
        }


class Exchange(NamedTuple):
    """One request to a service with all its attempts: the body that was sent, and the reply or the error."""

    method: str
    path: str
    sent: bytes
    received: bytes
    error: str
    latency_ms: float

    def step(self, name: str = "exchange", facts: Mapping[str, Any] | None = None) -> Step:
        """Return the exchange as a step; `facts` say what was sent and received."""
        said = {"request": f"{self.method} {self.path}", **(facts or {})}
        return Step(name, {**said, "error": self.error} if self.error else said, self.latency_ms)


class Trace:
    """Collects steps; each takes the time since the one before it.

    Args:
        take: returns the exchanges with services since it was last called.
        anew: whether the scorer is asked as well if a cache has the score.
        turn: held by one scorer at a time, so that the steps of a composite's parts do not mix.
    """

    def __init__(self, take: Callable[[], list[Exchange]], *, anew: bool, turn: asyncio.Lock | None = None) -> None:
        self.anew = anew
        self.turn = turn or asyncio.Lock()
        self.steps: list[Step] = []
        self.take = take
        self._since = time.monotonic()

    def note(self, name: str, facts: Mapping[str, Any], steps: Sequence[Step] | None = None) -> None:
        """Add a step that ends now, made of `steps`, or of the exchanges with services."""
        now = time.monotonic()
        inner = [one.step() for one in self.take()] if steps is None else list(steps)
        self.steps.append(Step(name, dict(facts), (now - self._since) * 1000, inner))
        self._since = now

    @contextmanager
    def within(self, name: str, facts: Mapping[str, Any]) -> Iterator[Trace]:
        """Add a step that is made of those that are noted in the trace of this context."""
        inner = Trace(self.take, anew=self.anew, turn=self.turn)
        step = Step(name, dict(facts), steps=inner.steps)
        self.steps.append(step)
        started = time.monotonic()
        try:
            yield inner
        finally:
            self._since = time.monotonic()
            step.latency_ms = (self._since - started) * 1000


def known(facts: Record) -> Record:
    """Return the facts that are not None."""
    return {name: value for name, value in facts.items() if value is not None}


def read_steps(records: Any, depth: int = 0) -> list[Step]:
    """Return the steps that a server has sent; raise ValueError, KeyError or TypeError if they are malformed."""
    if depth > MOST_DEEP:
        raise ValueError(f"steps within more than {MOST_DEEP} others")
    return [
        Step(str(one["step"]), dict(one["facts"]), float(one["latency_ms"]), read_steps(one["steps"], depth + 1))
        for one in records
    ]


def _writable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _writable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(one) for one in value]
    return value if isinstance(value, str | int | float | None) else str(value)
