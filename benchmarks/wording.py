"""Format figures as text: numbers, bounds, and what a figure is compared to."""

from __future__ import annotations

from benchmarks.figures import Figure, is_kept

SPACE, TIMES = "\N{NO-BREAK SPACE}", "\N{MULTIPLICATION SIGN}"
TAKEN = ("ms", "kB")
"""Units of time and memory, for which lower is better."""


def number(value: float) -> str:
    """Format a number: integers and numbers from 100 without decimals, others with two or three significant digits."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}" if abs(value) >= 0.1 else f"{value:.2g}"


def quantity(value: float, unit: str) -> str:
    """Format a number with its unit."""
    return f"{number(value)}{SPACE}{unit}" if unit else number(value)


def times(ratio: float) -> str:
    """Format a ratio."""
    return f"{number(ratio)}{SPACE}{TIMES}"


def rival(one: Figure) -> str:
    """Describe what a figure is compared to; say if less is better."""
    return f"{one['against']}{', less is better' if one['unit'] in TAKEN else ''}"


def bound(one: Figure) -> str:
    """Describe the bounds of a figure and whether they are kept; empty if it has none."""
    bounds = [("at least", one["least"]), ("at most", one["most"])]
    texts = [f"{word} {quantity(value, one['unit'])}" for word, value in bounds if value is not None]
    if one["least_ratio"] is not None:
        texts.append(f"at least {times(one['least_ratio'])}")
    return f"{', '.join(texts)}: {'met' if is_kept(one) else 'missed'}" if texts else ""
