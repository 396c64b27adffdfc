"""Verdicts on parts as one on the whole."""

from __future__ import annotations

from collections.abc import Iterable


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all are true: one that is false decides, one that is open leaves it open."""
    found = set(verdicts)
    return False if False in found else None if None in found else True
