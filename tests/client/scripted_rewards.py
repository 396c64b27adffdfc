"""Reward functions whose outcomes stand in the response: `{"first": 0.5, "second": "unscored", "third": "failed"}`.

`unscored` is a function that returns no score, `failed` one whose process is killed at work.
"""

from __future__ import annotations

import json
import os
import signal

from rewardstack_rules import reward_function


@reward_function
def first(response: str, reference: str | None = None) -> float | None:
    """The outcome named `first`."""
    return _outcome(response, "first")


@reward_function
def second(response: str, reference: str | None = None) -> float | None:
    """The outcome named `second`."""
    return _outcome(response, "second")


@reward_function
def third(response: str, reference: str | None = None) -> float | None:
    """The outcome named `third`."""
    return _outcome(response, "third")


def _outcome(response: str, name: str) -> float | None:
    outcome = json.loads(response)[name]
    if outcome == "failed":
        os.kill(os.getpid(), signal.SIGKILL)
    return None if outcome == "unscored" else float(outcome)
