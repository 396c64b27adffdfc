"""Degrees for radians: `60^\\circ` is `\\frac{\\pi}{3}`."""

from __future__ import annotations

import re

_DEGREES = re.compile(r"°|\\circ|\\degree|\bdegrees?\b")
_RADIAN = re.compile(r"\brad(?:ians?)?\b")
_RADIANS = re.compile(rf"\\,|\\(?:text|mathrm)\{{\s*{_RADIAN.pattern}\s*\}}|{_RADIAN.pattern}")
_PI = re.compile(r"\\pi(?![A-Za-z])|π|\bpi\b")
_FUNCTION = re.compile(r"sin|cos|tan|cot|sec|csc|log|ln")


def in_degrees(text: str, other: str) -> str | None:
    """A multiple of pi in degrees where the other text says degrees and this one does not; None anywhere else.

    Args:
        text: as it was written.
        other: the same.
    """
    if not _DEGREES.search(other) or _DEGREES.search(text) or _FUNCTION.search(text + other):
        return None
    return _RADIANS.sub("", _PI.sub("(180)", text)) if _PI.search(text) and not _PI.search(other) else None


def mixes_units(text: str, other: str) -> bool:
    """Whether one text says radians and the other degrees."""
    return any(
        _RADIAN.search(one) and _DEGREES.search(two) and not _DEGREES.search(one)
        for one, two in ((text, other), (other, text))
    )
