"""Record the figures of a benchmark for the report of `make bench`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

FILE = "BENCH_FIGURES"
"""Environment variable with the path of the file that figures are appended to, one JSON object a line."""


class Figure(TypedDict):
    """A measured value; the fields are the arguments of `figure`."""

    name: str
    value: float
    unit: str
    against: str | None
    ratio: float | None
    least: float | None
    most: float | None
    least_ratio: float | None
    note: str


def figure(
    name: str,
    value: float,
    unit: str = "",
    *,
    against: str | None = None,
    ratio: float | None = None,
    least: float | None = None,
    most: float | None = None,
    least_ratio: float | None = None,
    note: str = "",
) -> None:
    """Append a figure to the file that the environment variable BENCH_FIGURES names; do nothing if it is unset.

    Args:
        name: what was measured.
        value: the measured value.
        unit: unit of the value: "/s", "ms", "%", or empty for a count.
        against: what the value is compared to.
        ratio: ratio of the value to that of `against`.
        least: lower bound of the value.
        most: upper bound of the value.
        least_ratio: lower bound of the ratio.
        note: how it was measured, if the name does not say.

    Raises:
        ValueError: a number is infinite or NaN.
    """
    path = os.environ.get(FILE)
    if not path:
        return
    one = Figure(
        name=name, value=value, unit=unit, against=against, ratio=ratio, least=least, most=most,
        least_ratio=least_ratio, note=note,
    )  # fmt: skip
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(one, allow_nan=False)}\n")


def read(path: Path) -> list[Figure]:
    """Return the figures of a file in the order in which they were added; an empty list if there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def is_kept(one: Figure) -> bool | None:
    """Return whether a figure is within its bounds; None if it has no bounds."""
    pairs = ((one["value"], one["least"]), (one["most"], one["value"]), (one["ratio"], one["least_ratio"]))
    bounded = [more >= less for more, less in pairs if more is not None and less is not None]
    return all(bounded) if bounded else None
