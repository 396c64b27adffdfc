"""Reward functions that misbehave, each in its way."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from typing import Any

from rewardstack_rules import reward_function


@reward_function
def echo(response: str, reference: str | None = None, **extra: Any) -> dict[str, float]:
    """Tells how many fields it was given."""
    return {"score": 1.0, "fields": len(extra)}


@reward_function
def hang(response: str, reference: str | None = None) -> float:
    """Sleeps for an hour."""
    if response == "slow":
        time.sleep(3600)
    return 1.0


@reward_function
def slow(response: str, reference: str | None = None) -> float:
    """Takes its time."""
    time.sleep(0.5)
    return 1.0


@reward_function
def waits(response: str, reference: str | None = None) -> float:
    """Take until there is a file at the path that the response is."""
    while not os.path.exists(response):
        time.sleep(0.02)
    return 1.0


@reward_function
def busy(response: str, reference: str | None = None) -> float:
    """Computes for ever."""
    while response == "slow":
        pass
    return 1.0


@reward_function
def raises(response: str, reference: str | None = None) -> float:
    """Raises, and says more than a line."""
    raise ValueError(f"first line about {response}\nsecond line")


@reward_function
def raises_in_a_library(response: str, reference: str | None = None) -> float:
    """Calls a library that raises."""
    return float(json.loads(response))


@reward_function
async def cancelled(response: str, reference: str | None = None) -> float:
    """Raises what is no Exception."""
    raise asyncio.CancelledError


@reward_function
def leaves(response: str, reference: str | None = None) -> float:
    """Ends its process as if all were well."""
    if response == "now":
        os._exit(0)
    return 1.0


@reward_function
def exits(response: str, reference: str | None = None) -> float:
    """Asks its process to end."""
    raise SystemExit(3)


@reward_function(range=(0, 1))
def beyond(response: str, reference: str | None = None) -> float:
    """Leaves its range."""
    return 7.0


@reward_function
def not_a_number(response: str, reference: str | None = None) -> float:
    """Is no number, though a float."""
    return float("nan")


@reward_function
def text(response: str, reference: str | None = None) -> str:
    """Is no number at all."""
    return "good"


@reward_function
def silent(response: str, reference: str | None = None) -> None:
    """Returns no score."""
    return None


@reward_function
def needs_rubric(response: str, reference: str, rubric: str) -> float:
    """Cannot do without a field."""
    return float(rubric in response)


@reward_function
def two_for_one(prompts: list[str], responses: list[str], golden_responses: list[str] | None = None) -> list[float]:
    """Returns another number of rewards than it was given responses."""
    return [1.0, 2.0]


own_log = logging.getLogger("own_log_of_hostile")
own_log.addHandler(logging.StreamHandler())
own_log.setLevel(logging.INFO)
own_log.propagate = False


@reward_function
def prints(response: str, times: int = 1, and_raise: bool = False) -> float:
    """Prints, logs and warns."""
    for at in range(times):
        print(f"print {at} of {response}")
    print("to stderr", file=sys.stderr)
    own_log.info("an own record")
    logging.getLogger("another").warning("a warning")
    if and_raise:
        raise RuntimeError("after printing")
    return 1.0
