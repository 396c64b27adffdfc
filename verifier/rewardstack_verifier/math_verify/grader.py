"""Compare extracted answers: `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardstack_verifier.api import Reference, equivalent


def verify(
    gold: Sequence[Reference] | Reference,
    target: Sequence[str] | str,
    float_rounding: int = 6,
    numeric_precision: int = 15,
    strict: bool = True,
    allow_set_relation_comp: bool = False,
    timeout_seconds: int | None = 5,
    raise_on_error: bool = False,
) -> bool:
    """Return whether one of the target answers equals one of the gold answers.

    Args:
        gold: the right answers, as `parse` returns them, or as numbers.
        target: the answers of the response.
        float_rounding: no effect; decimals are compared by the digits that they show.
        numeric_precision: no effect.
        strict: no effect.
        allow_set_relation_comp: no effect; `x > 1` and `(1, \\infty)` are always equal.
        timeout_seconds: no effect.
        raise_on_error: no effect.
    """
    golds: Sequence[Any] = gold if isinstance(gold, (list, tuple)) else [gold]
    targets: Sequence[Any] = target if isinstance(target, (list, tuple)) else [target]
    return any(equivalent(answer, right).equal is True for right in golds for answer in targets)
