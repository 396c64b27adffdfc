"""Record how a sample is scored, step by step; `rewardstack explain` prints the steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rewardstack.core.json_types import plain
from rewardstack.core.wire import Record, score_record
from rewardstack.score import Score

MAX_DEPTH = 32
"""Maximum nesting of the steps in a server's explanation."""


@dataclass(slots=True)
class Step:
    """A step of scoring: its name, facts (values by name), latency, and inner steps."""

    name: str
    facts: Record
    latency_ms: float = 0.0
    steps: list[Step] = field(default_factory=list)

    def record(self) -> Record:
        """Return the step as JSON; infinity and NaN, which JSON does not have, become strings."""
        return {
            "step": self.name,
            "latency_ms": round(self.latency_ms, 3),
            "facts": _to_json(plain(self.facts)),
            "steps": [step.record() for step in self.steps],
        }


@dataclass(slots=True)
class Explanation:
    """How a sample was scored.

    Args:
        data_source: the sample's `data_source`.
        score: the score; None if scoring raised an error.
        steps: the steps of scoring, in order.
        error: message of the error that scoring raised, about a setting or the request; empty for none.
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
    """One request to a service and its outcome, after all retries: the reply or the error.

    `sent` and `received` are the bodies; both are empty if they would exceed the maximum size of the recording.
    """

    method: str
    path: str
    sent: bytes
    received: bytes
    error: str
    latency_ms: float

    def step(self, name: str = "exchange", facts: Mapping[str, Any] | None = None) -> Step:
        """Return the exchange as a step; `facts` describe what was sent and received."""
        found = {"request": f"{self.method} {self.path}", **(facts or {})}
        return Step(name, {**found, "error": self.error} if self.error else found, self.latency_ms)


exchanges: ContextVar[list[Exchange] | None] = ContextVar("exchanges", default=None)
"""The exchanges recorded within a `Trace.substep`; None outside of one. The parts of a composite (a route that combines
other routes) are scored at the same time, so each part has its own substep and list."""


class Trace:
    """Collects the steps of a sample; the latency of a step is the time since the previous step.

    Args:
        take: returns the exchanges with services since the last call of `take`; within a `substep`, only those of this
            substep.
        rescore: whether to call the scorer even if the score is cached.
    """

    def __init__(self, take: Callable[[], list[Exchange]], *, rescore: bool) -> None:
        self.rescore = rescore
        self.steps: list[Step] = []
        self.take = take
        self._since = time.monotonic()

    def note(self, name: str, facts: Mapping[str, Any], steps: Sequence[Step] | None = None) -> None:
        """Add a step that ends now.

        Args:
            name: name of the step.
            facts: values by name.
            steps: the inner steps; None to use the exchanges with services since the last step.
        """
        now = time.monotonic()
        inner = [exchange.step() for exchange in self.take()] if steps is None else list(steps)
        self.steps.append(Step(name, dict(facts), (now - self._since) * 1000, inner))
        self._since = now

    @contextmanager
    def substep(self, name: str, facts: Mapping[str, Any]) -> Iterator[Trace]:
        """Add a step; the steps that are added to the yielded trace become its inner steps."""
        inner = Trace(self.take, rescore=self.rescore)
        step = Step(name, dict(facts), steps=inner.steps)
        self.steps.append(step)
        started = time.monotonic()
        token = exchanges.set([])
        try:
            yield inner
        finally:
            exchanges.reset(token)
            self._since = time.monotonic()
            step.latency_ms = (self._since - started) * 1000


def drop_none(facts: Record) -> Record:
    """Return the facts that are not None."""
    return {name: value for name, value in facts.items() if value is not None}


def read_steps(records: Any, depth: int = 0) -> list[Step]:
    """Parse the steps in a server's explanation; raise ValueError, KeyError or TypeError if they are malformed."""
    if depth > MAX_DEPTH:
        raise ValueError(f"steps are nested more than {MAX_DEPTH} levels deep")
    return [
        Step(
            str(record["step"]),
            dict(record["facts"]),
            float(record["latency_ms"]),
            read_steps(record["steps"], depth + 1),
        )
        for record in records
    ]


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _to_json(element) for name, element in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(element) for element in value]
    return value if isinstance(value, str | int | float | None) else str(value)
