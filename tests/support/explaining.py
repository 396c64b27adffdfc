"""Explain requests, and find steps in the explanations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from rewardstack.client import explain
from rewardstack.core.steps import Explanation, Step
from rewardstack.score import OnError, Request
from rewardstack.settings import Settings


def explained(request: Request, *, on_error: OnError | None = None) -> Explanation:
    """Explain how a request gets its score, with the settings of the environment."""
    return asyncio.run(explain(request, Settings.from_env(), on_error=on_error, limit=60))


def named(steps: Sequence[Step], name: str) -> list[dict[str, Any]]:
    """Return the facts of all steps with a name, including nested steps, in order."""
    return [step.facts for step in _all(steps) if step.name == name]


def _all(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _all(step.steps)
