"""What a benchmark measured, written down beside what it prints, for the page that `make bench` makes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

FILE = "BENCH_FIGURES"
"""The variable with the file that figures are added to, a line of JSON each."""


class Figure(TypedDict):
    """One figure; its fields are the arguments of `figure`."""

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
    """Adds a figure to the file that `FILE` names; does nothing without one, as where a benchmark is run by itself.

    Args:
        name: what was measured.
        value: what came out.
        unit: of the value: "/s", "ms", "%", or nothing for a count.
        against: what it is compared to.
        ratio: how many times that it is.
        least: bound of the value.
        most: bound of the value.
        least_ratio: bound of the ratio.
        note: how it was got, where the name does not say.

    Raises:
        ValueError: a number is infinite or none.
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
    """The figures of a file, in the order in which they were added; none where it is not there."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def is_kept(one: Figure) -> bool | None:
    """Whether a figure keeps its bounds; nothing where it has none."""
    pairs = ((one["value"], one["least"]), (one["most"], one["value"]), (one["ratio"], one["least_ratio"]))
    bounded = [more >= less for more, less in pairs if more is not None and less is not None]
    return all(bounded) if bounded else None
