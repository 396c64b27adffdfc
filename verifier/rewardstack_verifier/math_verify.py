"""The functions of math_verify with their signatures, so that one import line switches a grader.

    from rewardstack_verifier.math_verify import parse, verify    # was: from math_verify import parse, verify

`parse` returns a list with the extracted answer as text instead of SymPy expressions; `verify` compares such lists. The
arguments that only concern SymPy or a clock have no effect: no verdict depends on time. Signatures are those of
math-verify 0.9 (https://github.com/huggingface/Math-Verify).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack_verifier.api import equivalent, extract
from rewardstack_verifier.extraction.extract import FLEXIBLE, STANDARD


@dataclass(frozen=True)
class LatexExtractionConfig:
    """Look for formulas.

    Args:
        try_extract_without_anchor: whether the last formula or number counts without a box or an announcement.
        boxed_match_priority: no effect; a box comes first.
        normalization_config: no effect.
    """

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


@dataclass(frozen=True)
class ExprExtractionConfig:
    """Look for plain expressions.

    Args:
        try_extract_without_anchor: whether the last formula or number counts without a box or an announcement.
    """

    try_extract_without_anchor: bool = True


@dataclass(frozen=True)
class StringExtractionConfig:
    """Look for strings; the answer is compared as text where it is no formula.

    Args:
        strings: no effect.
        try_extract_without_anchor: whether the last formula or number counts without a box or an announcement.
        lowercase: no effect.
    """

    strings: tuple[str, ...] = ("A", "B", "C", "D")
    try_extract_without_anchor: bool = True
    lowercase: bool = True


Config = LatexExtractionConfig | ExprExtractionConfig | StringExtractionConfig


def parse(
    pred: str,
    extraction_config: Sequence[Config] = (LatexExtractionConfig(), ExprExtractionConfig()),
    fallback_mode: str = "first_match",
    extraction_mode: str = "any_match",
    parsing_timeout: int | None = 5,
    raise_on_error: bool = False,
) -> list[str]:
    """Return the answer of a response or reference in a list; an empty list where there is none.

    Args:
        pred: a response, or a reference such as `$\\frac{1}{2}$`.
        extraction_config: where an answer may be.
        fallback_mode: no effect.
        extraction_mode: no effect; there is one answer.
        parsing_timeout: no effect.
        raise_on_error: no effect; nothing is raised.
    """
    if not pred or not extraction_config:
        return []
    anywhere = any(config.try_extract_without_anchor for config in extraction_config)
    answer = extract(pred, FLEXIBLE if anywhere else STANDARD)
    return [answer.text] if answer else []


def verify(
    gold: Sequence[str] | str,
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
        gold: the right answers, as `parse` returns them.
        target: the answers of the response.
        float_rounding: no effect; decimals are compared by the digits that they have.
        numeric_precision: no effect.
        strict: no effect.
        allow_set_relation_comp: no effect; `x > 1` and `(1, \\infty)` are equal.
        timeout_seconds: no effect.
        raise_on_error: no effect; nothing is raised.
    """
    golds, targets = ([one] if isinstance(one, str) else list(one) for one in (gold, target))
    return any(equivalent(answer, right).equal is True for right in golds for answer in targets)


__all__ = ["ExprExtractionConfig", "LatexExtractionConfig", "StringExtractionConfig", "parse", "verify"]
