"""Explanations, and the steps in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from rewardstack.client import explain
from rewardstack.core.steps import Explanation, Step
from rewardstack.score import OnError, Request
from rewardstack.settings import Settings


def explained(request: Request, *, on_error: OnError | None = None) -> Explanation:
    """How a request comes to its score under the environment's settings."""
    return asyncio.run(explain(request, Settings.from_env(), on_error=on_error, limit=60))


def named(steps: Sequence[Step], name: str) -> list[dict[str, Any]]:
    """The facts of all steps of a name, wherever they stand, in order."""
    return [step.facts for step in _all(steps) if step.name == name]


def _all(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _all(step.steps)
