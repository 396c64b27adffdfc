"""`regex_format`: 1 if the response matches a regular expression from the request, else 0.

A pattern can run forever on some responses, so matching runs in a process that can be killed.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

from rewardstack.core.fields import Fields, field_error
from rewardstack_rules.functions.outcome import Outcome

MAX_PATTERN = 2_000
"""Maximum number of characters in a pattern."""
MATCHES = ("full", "search")


def regex_format(response: str, *, pattern: str, pattern_match: str | None = None) -> Outcome:
    """Return 1 if a regular expression matches the response, else 0.

    Args:
        response: the policy's text.
        pattern: a regular expression of Python's `re`. Put flags into it, such as `(?s)` to let a dot match line ends.
        pattern_match: `full` (default: the pattern must match the whole response) or `search` (any part of it).

    Raises:
        RequestError: an option is malformed.
    """
    how = Fields({"pattern_match": pattern_match}).choice("pattern_match", MATCHES)
    expression = _compile(_check_pattern(pattern))
    found = expression.fullmatch(response) if how == "full" else expression.search(response)
    return Outcome(1.0) if found else Outcome(0.0, "the response does not match extra_info.pattern")


def _check_pattern(pattern: Any) -> str:
    if not isinstance(pattern, str) or not pattern:
        raise field_error("pattern", "must be a regular expression")
    if len(pattern) > MAX_PATTERN:
        raise field_error("pattern", f"is longer than {MAX_PATTERN} characters")
    return pattern


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # do not log warnings about the caller's pattern
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise field_error("pattern", f"is not a valid regular expression: {str(error)[:100]}") from error
