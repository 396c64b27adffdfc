"""Provide `parse` and its config classes, with the interface of math_verify's parser. Most options have no effect.

The config classes do not limit what is read: formulas, numbers and words are always read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rewardstack_verifier.api import extract
from rewardstack_verifier.extraction.extract import FLEXIBLE, STANDARD, check_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NormalizationConfig:
    """Options to clean LaTeX. No field has an effect: the parser reads LaTeX as it is."""

    basic_latex: bool = True
    units: bool = False
    malformed_operators: bool = False
    nits: bool = False
    boxed: Literal["all", "last", "none"] = "all"
    equations: bool = False


@dataclass(frozen=True)
class LatexExtractionConfig:
    """Options for LaTeX formulas.

    Args:
        try_extract_without_anchor: whether the last formula or number is the answer if there is neither a box nor a
            phrase such as "the answer is". If several configurations are given, it is enough that one of them
            allows this.
        boxed_match_priority: no effect; a box always has priority.
        normalization_config: no effect.
    """

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


@dataclass(frozen=True)
class ExprExtractionConfig:
    """Options for plain expressions.

    Args:
        try_extract_without_anchor: whether the last formula or number is the answer if there is neither a box nor a
            phrase such as "the answer is". If several configurations are given, it is enough that one of them
            allows this.
    """

    try_extract_without_anchor: bool = True


@dataclass(frozen=True)
class StringExtractionConfig:
    """Options for strings. An answer that is not a formula is compared as text.

    Args:
        strings: no effect.
        try_extract_without_anchor: whether the last formula or number is the answer if there is neither a box nor a
            phrase such as "the answer is". If several configurations are given, it is enough that one of them
            allows this.
        lowercase: no effect.
    """

    strings: tuple[str, ...] = ("A", "B", "C", "D")
    try_extract_without_anchor: bool = True
    lowercase: bool = True


ExtractionTarget = LatexExtractionConfig | ExprExtractionConfig | StringExtractionConfig


def parse(
    pred: str,
    extraction_config: Sequence[ExtractionTarget] = (LatexExtractionConfig(), ExprExtractionConfig()),
    fallback_mode: str = "first_match",
    extraction_mode: str = "any_match",
    parsing_timeout: int | None = 5,
    raise_on_error: bool = False,
) -> list[str]:
    """Return the answer of a response or reference in a list; an empty list if there is none.

    Args:
        pred: a response, or a reference such as `$\\frac{1}{2}$`.
        extraction_config: configurations, of which only `try_extract_without_anchor` has an effect; if there are none,
            the result is empty.
        fallback_mode: no effect.
        extraction_mode: no effect; at most one answer is returned.
        parsing_timeout: no effect.
        raise_on_error: whether to raise an error if `pred` is not a string; otherwise a warning is logged and the
            result is empty.

    Raises:
        TypeError: `pred` is not a string, and `raise_on_error` is set.
    """
    if not isinstance(pred, str) and not raise_on_error:
        logger.warning("pred: expected a string, got %s; it has no answer", type(pred).__name__)
        return []
    check_text("pred", pred)
    if not extraction_config:
        return []
    anywhere = any(config.try_extract_without_anchor for config in extraction_config)
    answer = extract(pred, FLEXIBLE if anywhere else STANDARD)
    return [answer.text] if answer else []
