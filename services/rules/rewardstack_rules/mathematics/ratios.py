"""Ratios: `2:3:5`, which is 4:6:10 and no number, and `3:4`, which is 3/4 as well."""

from __future__ import annotations

import math
import re

from rewardstack_rules.mathematics import algebra

_COLON = re.compile(r"\s*:\s*")
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)")


def terms(text: str) -> tuple[str, ...]:
    """What stands between the colons of a tidied text; at least two, else empty."""
    found = tuple(_COLON.split(text)) if ":" in text and "\\{" not in text else ()
    return found if all(found) else ()


def equal(one: str, other: str) -> bool | None:
    """Whether two texts are the same ratio; None where neither has three terms, or a term cannot be read."""
    found, expected = terms(one), terms(other)
    if max(len(found), len(expected)) < 3:
        return None
    if len(found) != len(expected):
        return False
    products = [
        algebra.equal(f"({term})({expected[0]})", f"({found[0]})({same})")
        for term, same in zip(found[1:], expected[1:], strict=True)
    ]
    return None if None in products else all(products)


def is_clock(text: str) -> bool:
    """Whether a tidied text can be nothing but a time: `10:05`."""
    match = _CLOCK.fullmatch(text)
    return match is not None and match[2][0] == "0"


def is_time(text: str) -> bool:
    """Whether a tidied text is rather a time than a ratio: `3:30`, which has two digits and could be reduced."""
    match = _CLOCK.fullmatch(text)
    return match is not None and (match[2][0] == "0" or math.gcd(int(match[1]), int(match[2])) > 1)
