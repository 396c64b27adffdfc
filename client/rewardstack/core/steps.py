"""What happened to one sample on its way to a score, step by step: what `rewardstack explain` tells."""

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
    """One thing that was done.

    Args:
        name: what it was, in a word or two.
        facts: what there is to say of it, by name, in plain JSON types.
        latency_ms: milliseconds that it took.
        steps: those that it was made of.
    """

    name: str
    facts: Record
    latency_ms: float = 0.0
    steps: list[Step] = field(default_factory=list)

    def record(self) -> Record:
        """The step as JSON; infinity and NaN, which JSON does not have, as text."""
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
        score: as scoring gives it; None where scoring raises `error`.
        steps: in order.
        error: why nothing can be scored so: a setting or the request is wrong; empty where nothing is.
    """

    data_source: str
    score: Score | None
    steps: list[Step]
    error: str = ""

    def record(self) -> Record:
        """The explanation as JSON."""
        return {
            "data_source": self.data_source,
            "score": None if self.score is None else score_record(self.score),
            "error": self.error,
            "steps": [step.record() for step in self.steps],
        }


class Exchange(NamedTuple):
    """One request to a service, and what became of it; attempts that were made again are one with it.

    Args:
        method: of HTTP.
        path: below the service's base URL.
        sent: the body; empty for none.
        received: the reply; empty where there is none.
        error: why there is none; empty where there is one.
        latency_ms: milliseconds from the request to the reply, its wait for its turn and further attempts among them.
    """

    method: str
    path: str
    sent: bytes
    received: bytes
    error: str
    latency_ms: float

    def step(self, name: str = "exchange", facts: Mapping[str, Any] | None = None, steps: Sequence[Step] = ()) -> Step:
        """The exchange as a step; what was sent and received is for those to tell who can read it, in `facts`."""
        said = {"request": f"{self.method} {self.path}", **(facts or {})}
        return Step(name, {**said, "error": self.error} if self.error else said, self.latency_ms, list(steps))


class Trace:
    """Collects steps; each takes the time since the one before it.

    Args:
        take: the exchanges with services since it was last called.
        anew: whether the scorer is asked as well where a cache has the score.
    """

    def __init__(self, take: Callable[[], list[Exchange]], *, anew: bool, turn: asyncio.Lock | None = None) -> None:
        self.anew = anew
        self.turn = turn or asyncio.Lock()
        """Held by each scorer in turn, so that steps and exchanges of a composite's parts do not mix."""
        self.steps: list[Step] = []
        self.take = take
        self._since = time.monotonic()

    def note(self, name: str, facts: Mapping[str, Any], steps: Sequence[Step] | None = None) -> None:
        """Adds a step that ends now.

        Args:
            name: what was done.
            facts: what there is to say of it.
            steps: those that it was made of; None for the exchanges with services.
        """
        now = time.monotonic()
        inner = [one.step() for one in self.take()] if steps is None else list(steps)
        self.steps.append(Step(name, dict(facts), (now - self._since) * 1000, inner))
        self._since = now

    @contextmanager
    def within(self, name: str, facts: Mapping[str, Any]) -> Iterator[Trace]:
        """A step that is made of those that are noted in the trace that this gives."""
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
    """The facts that are not None."""
    return {name: value for name, value in facts.items() if value is not None}


def read_steps(records: Any, depth: int = 0) -> list[Step]:
    """The steps that a server has sent.

    Raises:
        ValueError, KeyError, TypeError: they are no such.
    """
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
