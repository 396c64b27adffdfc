"""Trace where an answer was found and which comparisons were made, for explanations.

Outside of `with_trace`, nothing is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
MAX_STEPS = 64
"""Maximum number of traced steps; further steps are not traced."""
UNDECIDED = "undecided"
"""The step that is traced if a comparison of two expressions reached its limits without a decision."""

_steps: ContextVar[list[str] | None] = ContextVar("steps", default=None)


def trace(step: str) -> None:
    """Record a step; repeated steps are recorded once."""
    steps = _steps.get()
    if steps is not None and len(steps) < MAX_STEPS and step not in steps:
        steps.append(step)


def trace_place(answer: str | None, where: str) -> str | None:
    """Trace where an answer was found, and return the answer; an empty or missing answer is not traced."""
    if answer:
        trace(where)
    return answer


def with_trace(work: Callable[[], T]) -> tuple[T, list[str]]:
    """Call `work`, and return its result and the traced steps, in order."""
    steps: list[str] = []
    token = _steps.set(steps)
    try:
        return work(), steps
    finally:
        _steps.reset(token)
