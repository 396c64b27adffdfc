"""Trace where an answer was found and which comparisons were made, for explanations; active only within `traced`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
MAX_STEPS = 64
"""Maximum number of traced steps, because an answer with many parts needs many comparisons."""
UNDECIDED = "undecided"
"""Step that is traced if a comparison of two expressions reached its limits without a decision."""

_steps: ContextVar[list[str] | None] = ContextVar("steps", default=None)


def trace(step: str) -> None:
    """Record a step; repeated steps are recorded once."""
    steps = _steps.get()
    if steps is not None and len(steps) < MAX_STEPS and step not in steps:
        steps.append(step)


def found(answer: str | None, where: str) -> str | None:
    """Return `answer`; if it is not empty, trace where it was found."""
    if answer:
        trace(where)
    return answer


def traced(work: Callable[[], T]) -> tuple[T, list[str]]:
    """Call `work`; return its result and the steps that it traced, in order."""
    steps: list[str] = []
    token = _steps.set(steps)
    try:
        return work(), steps
    finally:
        _steps.reset(token)
