"""Convert the return value of a reward function to an outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

from rewardstack_rules.functions.outcome import Outcome

VALUES = ("score", "reward", "rewards")
"""Keys under which a returned dict may hold the value. The first one present is used. OpenRLHF uses `rewards`."""
MAX_REASON_LENGTH = 500
EXPECTED = 'return a number, a dict with "score", or None'


class ResultError(Exception):
    """Raised for a return value that is not a score.

    The message is the end of a sentence that begins with "the function returned".
    """


def as_outcome(result: Any, title: str = "") -> Outcome:
    """Convert what a reward function returned to an outcome.

    Args:
        result: an outcome; a number; a dict with `score` (or `reward`, `rewards`); None for a sample without a score;
            or a list, tuple or array whose only element is a number, a dict or None. In a dict, other numbers become
            the parts, the text `reason` becomes the reason, and the rest is ignored.
        title: the function's name for the reason if it returned None; empty for a built-in function.

    Raises:
        ResultError: the result is something else, or a number is not finite.
    """
    if isinstance(result, Outcome):
        return result
    result = _single_element(result)
    if result is None:
        return Outcome(None, _no_score(title))
    if isinstance(result, Mapping):
        return _read_dict(result, title)
    value = _number(result)
    if value is None:
        raise ResultError(f"{_describe(result)}; {EXPECTED}")
    return Outcome(value)


def _no_score(title: str) -> str:
    if not title:
        return "the reward function gave no score"
    return f"{title} gave no score: it returned None; return a number to score the sample"


def _read_dict(result: Mapping[Any, Any], title: str) -> Outcome:
    key = next((name for name in VALUES if name in result), None)
    if key is None:
        names = ", ".join(str(name)[:40] for name in [*result][:5]) or "nothing"
        raise ResultError(f'a dict without "score" (it has: {names}); {EXPECTED}')
    reason = result.get("reason")
    reason = reason[:MAX_REASON_LENGTH] if isinstance(reason, str) else ""
    value = _single_element(result[key])
    if value is None:
        return Outcome(None, reason or _no_score(title))
    number = _number(value, key)
    if number is None:
        raise ResultError(f"{_describe(value)} as {key!r}; {EXPECTED}")
    return Outcome(number, reason, _parts(result, key) or None)


def _parts(result: Mapping[Any, Any], key: str) -> dict[str, float]:
    """Return the numbers in a dict, by key, except the value.

    If the value has the key `rewards`, the function is written for OpenRLHF. Then the numbers in the dict `extra_logs`
    are returned, too, and a list or array of one number counts as this number.

    Args:
        result: the dict that the reward function returned.
        key: the key of the value, one of `VALUES`.
    """
    others = {str(name): value for name, value in result.items() if name != key}
    if key == "rewards":
        logs = others.pop("extra_logs", None)
        others.update(logs if isinstance(logs, Mapping) else {})
        others = {name: _single_element(value) if _size(value) == 1 else value for name, value in others.items()}
    numbers = {name: _number(value, name) for name, value in others.items()}
    return {str(name): number for name, number in numbers.items() if number is not None}


def _single_element(result: Any) -> Any:
    """Return the only element of a list, tuple or array. If this element is a list, too, return its only element.

    Return anything else unchanged.

    Raises:
        ResultError: the list, tuple or array does not have exactly one element.
    """
    size = _size(result)
    if size is None:
        return result
    if size != 1:
        raise ResultError(f"a {type(result).__name__} of {size} for one response; {EXPECTED}")
    return _single_element(result[0])


def _size(value: Any) -> int | None:
    """Return the length of a list, tuple, array or tensor; None for anything else."""
    if isinstance(value, (list, tuple)):
        return len(value)
    shape = getattr(value, "shape", None)
    return int(shape[0]) if shape is not None and callable(getattr(value, "item", None)) and len(shape) else None


def _number(value: Any, name: str = "") -> float | None:
    """Return a number as a float; None if the value is not a number.

    Raises:
        ResultError: the number is not finite.
    """
    if callable(getattr(value, "item", None)):
        try:
            value = value.item()
        except (TypeError, ValueError, RuntimeError):
            return None
    if not isinstance(value, (Real, Decimal)):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        number = math.inf
    if not math.isfinite(number):
        raise ResultError(f"{value!s:.40}{f' as {name!r}' if name else ''}, which is not finite; {EXPECTED}")
    return number


def _describe(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    hint = " (use `return` instead of `yield`)" if kind in ("generator", "async_generator") else ""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}{hint}"
