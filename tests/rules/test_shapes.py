"""How a reward function's signature and result are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rewardstack.errors import RouteError
from rewardstack_rules import Unscored
from rewardstack_rules.functions.adapters import as_outcome, read_shape
from rewardstack_rules.functions.outcome import Outcome


def per_item(response, reference):  # type: ignore[no-untyped-def]
    return float(response == reference)


def without_reference(response, reference=None):  # type: ignore[no-untyped-def]
    return 1.0 if reference is None else 2.0


def with_fields(response, reference, unit, digits=2, *, strict=False):  # type: ignore[no-untyped-def]
    return {"score": 1.0, "digits": digits}


def with_all_fields(response, reference=None, **extra):  # type: ignore[no-untyped-def]
    return len(extra)


def batch(prompts, responses, golden_responses=None):  # type: ignore[no-untyped-def]
    return [float(len(prompts[0]) + (golden_responses is not None)) for _ in responses]


def batch_with_gold(prompt, response, golden_response):  # type: ignore[no-untyped-def]
    return [1.0]


@pytest.mark.parametrize(
    ("function", "needs_reference", "fields"),
    [
        (per_item, True, ()),
        (without_reference, False, ()),
        (with_fields, True, ("unit", "digits", "strict")),
        (with_all_fields, False, ("*",)),
        (batch, False, ("prompt",)),
        (batch_with_gold, True, ("prompt",)),
    ],
)
def test_signature(function: Callable[..., Any], needs_reference: bool, fields: tuple[str, ...]) -> None:
    """A signature tells whether a reference is needed and which fields of extra_info are read."""
    shape = read_shape(function)

    assert (needs_reference, fields) == (shape.needs_reference, shape.fields)


@pytest.mark.parametrize(
    "function",
    [lambda response: 1.0, lambda: 1.0, lambda prompts, responses: [1.0], lambda prompts, responses, a, b: []],
)
def test_unknown_signature(function: Callable[..., Any]) -> None:
    """A function of neither shape is an error that tells both."""
    with pytest.raises(RouteError, match=r"\(response, reference, \.\.\.\) for one sample, or \(prompts, responses"):
        read_shape(function)


def test_best_reference() -> None:
    """A per-item function is valued by its best reference."""
    assert read_shape(per_item).evaluate("b", ["a", "b", "c"], {}).value == 1.0


def test_fields_are_handed_over() -> None:
    """A function is given the fields it names, where they are there, and no others."""
    outcome = read_shape(with_fields).evaluate("a", ["b"], {"unit": "m", "digits": 3, "other": 1})

    assert outcome == Outcome(1.0, parts={"digits": 3.0})


def test_missing_field() -> None:
    """Without a field that a function cannot do without the sample is unscored, and the reason names the field."""
    assert read_shape(with_fields).evaluate("a", ["b"], {}) == Outcome(
        None, "extra_info.unit is missing", field="extra_info.unit"
    )


def test_fields_named_like_arguments() -> None:
    """A field that has an argument's name does not take its place."""
    assert read_shape(with_all_fields).evaluate("a", [], {"response": "b", "reference": "c", "other": 1}).value == 1.0


def test_batch_is_called_with_one() -> None:
    """A batch function gets one prompt and one response, and None where there is no reference."""
    evaluate = read_shape(batch).evaluate

    assert (evaluate("a", [], {"prompt": "abc"}).value, evaluate("a", ["b"], {"prompt": "abc"}).value) == (3.0, 4.0)


def test_unscored() -> None:
    """A reference that a function cannot use counts for nothing; if none is of use, the sample is unscored."""

    def picky(response: str, reference: str) -> float:
        if reference == "?":
            raise Unscored("the reference is a question mark")
        return 0.5

    evaluate = read_shape(picky).evaluate

    assert (evaluate("a", ["?", "b"], {}).value, evaluate("a", ["?"], {})) == (
        0.5,
        Outcome(None, "the reference is a question mark"),
    )


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (1, Outcome(1.0)),
        (True, Outcome(1.0)),
        (np.float32(0.5), Outcome(0.5)),
        ({"score": 1, "a": np.int64(2)}, Outcome(1.0, parts={"a": 2.0})),
        ({"score": 1}, Outcome(1.0)),
        (None, Outcome(None, "the reward function gave no score")),
    ],
)
def test_result(result: Any, outcome: Outcome) -> None:
    """Numbers of every kind, dicts with a score, and None are results."""
    assert as_outcome(result) == outcome


@pytest.mark.parametrize("result", ["1", [1.0], float("nan"), float("inf"), {"value": 1}, {"score": "1"}, 1j])
def test_no_result(result: Any) -> None:
    """Anything else is an error, not a score."""
    with pytest.raises((TypeError, ValueError)):
        as_outcome(result)
