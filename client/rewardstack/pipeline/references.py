"""Which references a sample is compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rewardstack.core.json_types import plain


def as_references(ground_truth: Any, field: str = "ground_truth") -> tuple[str, ...]:
    """The references that a `ground_truth` holds.

    Args:
        ground_truth: a string, a number, or a list (or NumPy array) of those; None, and NaN in its place, for none.
        field: where it comes from, for the error.

    Returns:
        Its strings in order, blank ones left out. Numbers are written as Python writes them.

    Raises:
        TypeError: it holds something else; the message says what.
    """
    if isinstance(ground_truth, str):
        return (ground_truth,) if ground_truth.strip() else ()
    value = plain(ground_truth)
    if value is None:
        return ()
    if not isinstance(value, list):
        value = [value]
    return tuple(text for one in value if (text := _text(one, field)).strip())


def _text(value: Any, field: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{field}: expected a string or a list of strings, got {type(value).__name__}")
    try:
        return str(value)
    except ValueError as error:
        raise TypeError(f"{field}: {error}") from error


def choose(references: tuple[str, ...], extra: Mapping[str, Any]) -> tuple[str, ...]:
    """The references that the filters of `extra_info` leave; a filter that would leave nothing leaves all.

    Args:
        references: all of the sample's references.
        extra: `target_gt` (a string or a list of strings: references equal to it), then `filter_gt_by_prompt_token`
            with `prompt` (references that hold the prompt's last whitespace token, lower-cased, as a token).

    Raises:
        TypeError: `target_gt` holds something else than text and numbers.
    """
    if not extra:
        return references
    wanted = set(as_references(extra.get("target_gt"), "extra_info.target_gt"))
    if wanted:
        references = tuple(one for one in references if one in wanted) or references
    if extra.get("filter_gt_by_prompt_token") and isinstance(extra.get("prompt"), str):
        tokens = extra["prompt"].lower().split()
        if tokens:
            references = tuple(one for one in references if tokens[-1] in one.lower().split()) or references
    return references
