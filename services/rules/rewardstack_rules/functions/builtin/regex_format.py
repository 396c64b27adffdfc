"""`regex_format`: 1 if the response has the form that a pattern of the caller's describes, else 0.

A pattern can run forever on some responses, so this runs in a process that can be killed.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

from rewardstack.core.fields import Fields, field_error
from rewardstack_rules.functions.outcome import Outcome

MAX_PATTERN = 2_000
"""Maximum characters of a pattern."""
MATCHES = ("full", "search")


def regex_format(
    response: str, reference: str | None = None, *, pattern: str, pattern_match: str | None = None
) -> Outcome:
    """Return 1 if a regular expression matches the response, else 0.

    Args:
        response: what the policy wrote.
        reference: not read.
        pattern: as Python's `re` has it; with flags inside it, such as `(?s)` for a dot that matches line ends.
        pattern_match: `full` (it matches the whole response) or `search` (it matches somewhere).

    Raises:
        RequestError: an option is malformed.
    """
    how = Fields({"pattern_match": pattern_match}).choice("pattern_match", MATCHES)
    expression = _compiled(_checked(pattern))
    found = expression.fullmatch(response) if how == "full" else expression.search(response)
    return Outcome(1.0) if found else Outcome(0.0, "the response does not match extra_info.pattern")


def _checked(pattern: Any) -> str:
    if not isinstance(pattern, str) or not pattern:
        raise field_error("pattern", "must be a regular expression")
    if len(pattern) > MAX_PATTERN:
        raise field_error("pattern", f"is longer than {MAX_PATTERN} characters")
    return pattern


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # do not log what a later Python may read differently
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise field_error("pattern", f"is no regular expression: {str(error)[:100]}") from error
