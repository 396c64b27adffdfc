"""Quantities that are one value together, "4 hours and 30 minutes", as a formula between dollars: `with_totals`."""

from __future__ import annotations

import re
from itertools import pairwise

from rewardstack_verifier.reading.lexer import UnreadError, lex
from rewardstack_verifier.reading.quantities import total
from rewardstack_verifier.reading.syntax import Quantity

MOST = 2_000
"""Characters of a sentence in which totals are looked for."""
_MEASURED = r"\d{1,6}(?:\.\d{1,3})?\s?[^\W\d_]{1,12}"
_TOTAL = re.compile(rf"(?<![\w.,:/^+*=<>-])(?:{_MEASURED},?\s?(?:[^\W\d_]{{1,3}}\s)?){{1,3}}{_MEASURED}(?![\w/^])")
_LAST_UNIT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+\Z")


def with_totals(sentence: str) -> str:
    """A sentence with its totals between dollars; as it is where formulas stand in it.

    Args:
        sentence: of a response.
    """
    if len(sentence) > MOST or "$" in sentence or "\\" in sentence:
        return sentence
    return _TOTAL.sub(lambda found: _marked(found[0]), sentence)


def _marked(text: str) -> str:
    """A total between dollars; where words have no spaces around them, without those behind its last unit."""
    last = _LAST_UNIT.search(text)
    ends = range(len(text), last.start() if last else len(text) - 1, -1)
    end = next((end for end in ends if _is_total(text[:end])), 0)
    return f"${text[:end]}${text[end:]}" if end else text


def _is_total(text: str) -> bool:
    """Whether each quantity is measured in a part of the unit before it."""
    try:
        quantities = total(lex(text)).quantities
    except UnreadError:
        return False
    return all(_is_part(one, other) for one, other in pairwise(quantities))


def _is_part(one: Quantity, other: Quantity) -> bool:
    pairs = ((larger, smaller) for larger in one.meanings for smaller in other.meanings)
    return any(larger.dimensions == smaller.dimensions and larger.size > smaller.size for larger, smaller in pairs)
