"""The reward functions that come with the server, one file each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from rewardstack_rules.fingerprint import fingerprint
from rewardstack_rules.registry import Rule
from rewardstack_rules.rewards.exact_match import exact_match
from rewardstack_rules.rewards.example_coding import example_coding
from rewardstack_rules.rewards.example_math import example_math
from rewardstack_rules.rewards.example_safety import example_safety
from rewardstack_rules.rewards.gsm8k import gsm8k
from rewardstack_rules.rewards.math import math
from rewardstack_rules.rewards.math_verifier import math_verifier
from rewardstack_rules.shapes import read_shape

VERIFIERS = ((math_verifier, (0.0, 1.5)), (math, (0.0, 1.0)))
"""Compare with all references at once, in a process that can be killed."""
INLINE = (gsm8k, exact_match, example_math, example_coding, example_safety)
"""Bounded by their own making, so they run where they are called."""


def built_in_rules() -> Iterator[Rule]:
    """The rules that every server has."""
    for verifier, values in VERIFIERS:
        yield Rule(verifier.__name__, verifier, fingerprint(_file(verifier)), range=values)
    for function in INLINE:
        shape = read_shape(function)
        yield Rule(
            function.__name__,
            shape.judge,
            fingerprint(_file(function)),
            shape.needs_reference,
            range=(0.0, 1.0),
            isolated=False,
        )


def _file(function: object) -> Path:
    return Path(inspect.getfile(function))  # type: ignore[arg-type]
