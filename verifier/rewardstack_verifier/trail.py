"""Where an answer was found and which comparisons decided, told to whoever explains a verdict; else to nobody."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
MOST = 64
"""Of what is told at most: an answer of many parts takes many comparisons."""
UNDECIDED = "undecided"
"""What is told where it could not be found out within the bounds whether two are equal."""

_told: ContextVar[list[str] | None] = ContextVar("told", default=None)


def tell(what: str) -> None:
    """Says what was done."""
    told = _told.get()
    if told is not None and len(told) < MOST and what not in told:
        told.append(what)


def found(answer: str | None, where: str) -> str | None:
    """`answer`; where there is one, says where it stood."""
    if answer:
        tell(where)
    return answer


def traced(work: Callable[[], T]) -> tuple[T, list[str]]:
    """What `work` gives, and what was told meanwhile, in order."""
    told: list[str] = []
    token = _told.set(told)
    try:
        return work(), told
    finally:
        _told.reset(token)
