"""Trace where an answer was found and which comparisons decided, for explanations; without a listener, do nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
MAX_STEPS = 64
"""Maximum number of traced steps: an answer with many parts needs many comparisons."""
UNDECIDED = "undecided"
"""Traced if the limits did not allow to decide whether two expressions are equal."""

_steps: ContextVar[list[str] | None] = ContextVar("steps", default=None)


def trace(step: str) -> None:
    """Record a step, once."""
    steps = _steps.get()
    if steps is not None and len(steps) < MAX_STEPS and step not in steps:
        steps.append(step)


def found(answer: str | None, where: str) -> str | None:
    """Return `answer`; if there is one, trace where it was found."""
    if answer:
        trace(where)
    return answer


def traced(work: Callable[[], T]) -> tuple[T, list[str]]:
    """Return what `work` returns, and the steps that were traced, in order."""
    steps: list[str] = []
    token = _steps.set(steps)
    try:
        return work(), steps
    finally:
        _steps.reset(token)
