"""Fields of `extra_info`: what fits is read, what does not is refused by name, and what is missing has its default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rewardstack.core.fields import Fields
from rewardstack.errors import RequestError

MISSING = (None, float("nan"), np.float32("nan"))
READERS: dict[str, Any] = {
    "text": lambda fields: fields.text("name", "default"),
    "number": lambda fields: fields.number("name", 0.5, 0, 2),
    "above": lambda fields: fields.number("name", 0.5, 0, 2, is_exclusive=True),
    "whole": lambda fields: fields.integer("name", 1, 0, 5),
    "flag": lambda fields: fields.flag("name", True),
    "choice": lambda fields: fields.choice("name", ("first", "second")),
}
DEFAULTS = {"text": "default", "number": 0.5, "above": 0.5, "whole": 1, "flag": True, "choice": "first"}


@pytest.mark.parametrize("kind", READERS)
def test_missing(kind: str) -> None:
    """A field that is not there, that is None or NaN, has its default."""
    assert [DEFAULTS[kind]] * 4 == [READERS[kind](Fields(values)) for values in ({}, *({"name": x} for x in MISSING))]


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("text", np.str_("a"), "a"),
        ("number", 0, 0.0),
        ("number", np.float32(1.5), 1.5),
        ("above", 2, 2.0),
        ("whole", 5.0, 5),
        ("whole", np.int64(3), 3),
        ("flag", np.bool_(False), False),
        ("choice", "second", "second"),
    ],
)
def test_what_fits(kind: str, value: Any, read: Any) -> None:
    """Values come in Python's own types."""
    found = READERS[kind](Fields({"name": value}))
    assert (found, isinstance(found, type(read))) == (read, True)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("text", 7, "expected a string, got int"),
        ("number", True, "expected a number from 0 to 2, got True"),
        ("number", float("inf"), "expected a number from 0 to 2, got inf"),
        ("number", 10**400, "expected a number from 0 to 2, got a value of type int"),
        ("above", 0, "expected a number above 0 and at most 2, got 0"),
        ("whole", 1.5, "expected a whole number from 0 to 5, got 1.5"),
        ("whole", float("inf"), "expected a whole number from 0 to 5, got inf"),
        ("flag", "yes", "expected true or false, got 'yes'"),
        ("choice", ["first"], "expected one of first, second, got a value of type list"),
        ("choice", "x" * 99, f"expected one of first, second, got '{'x' * 49}…"),
    ],
)
def test_what_does_not(kind: str, value: Any, message: str) -> None:
    """The error names the field, what it may hold, and what it holds, in few characters."""
    with pytest.raises(RequestError) as caught:
        READERS[kind](Fields({"name": value}))
    assert (f"extra_info.name: {message}", "extra_info.name") == (str(caught.value), caught.value.field)
