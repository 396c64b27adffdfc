"""Samples for `code` out of the tables in `tests/cases/code`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.code.unconfined import PRELUDE, Bait

CASES = Path(__file__).resolve().parents[1] / "cases" / "code"
EXPECTED = "EXPECTED_4711|"
"""In the memory of the server, never in that of a program."""


def load(*names: str) -> list[dict[str, Any]]:
    """Return the rows of tables."""
    return [row for name in names for row in json.loads((CASES / f"{name}.json").read_text())]


def sample(program: str, tests: Any, **options: Any) -> dict[str, Any]:
    """Return a sample whose response is a program."""
    response = f"```python\n{program}\n```"
    return {"data_source": "code", "solution_str": response, "ground_truth": tests, "extra_info": options}


def attack(source: str, bait: Bait, server: int, **options: Any) -> dict[str, Any]:
    """Return a sample of an attack; its first test passes if the attack works."""
    tests = {"inputs": ["", ""], "outputs": ["BREACH", EXPECTED]}
    options = {"compare": "tokens", "time_limit": 1, **options}  # expires: many attacks never end
    return sample(PRELUDE + bait.fill(source, server), tests, **options)


def in_batches(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    """Give rows in batches."""
    every = [*rows]
    yield from (every[at : at + size] for at in range(0, len(every), size))
