"""`repetition`: the share of distinct n-grams in a response; 1 if no n-gram occurs twice.

    value = distinct n-grams / all n-grams

The value is 1 minus the n-gram repetition penalty of Open-R1 (`get_repetition_penalty_reward`, after appendix C.2 of
Yeo et al. 2025, "Demystifying Long Chain-of-Thought Reasoning in LLMs", arXiv:2502.03373). By default, an n-gram is
three words in lower case.
"""

from __future__ import annotations

from itertools import islice

from rewardstack.core.fields import Fields
from rewardstack_rules.functions.outcome import Outcome

UNITS = ("words", "characters")
NGRAM_SIZE = 3
MAX_NGRAM_SIZE = 20
MAX_RESPONSE = 500_000
"""Maximum number of characters of a response; a longer one scores 0."""


def repetition(
    response: str,
    ngram_size: float | None = None,
    repetition_unit: str | None = None,
) -> Outcome:
    """Score how little the response repeats itself. Time and memory are linear in its length.

    Args:
        response: the policy's text; it scores 1 if it has fewer than two n-grams, but 0 if it is blank.
        ngram_size: number of units in an n-gram, from 1 to 20; by default 3.
        repetition_unit: unit of n-grams: `words` (separated by white space; default), or `characters` for languages
            that are written without spaces.

    Raises:
        RequestError: an option is malformed.
    """
    options = Fields({"ngram_size": ngram_size, "repetition_unit": repetition_unit})
    size = options.integer("ngram_size", NGRAM_SIZE, 1, MAX_NGRAM_SIZE)
    unit = options.choice("repetition_unit", UNITS)
    if len(response) > MAX_RESPONSE:
        return Outcome(0.0, f"the response is longer than {MAX_RESPONSE} characters")
    if not response.strip():
        return Outcome(0.0, "the response is blank")
    text = response.lower()
    units = list(text) if unit == "characters" else text.split()
    total = len(units) - size + 1
    if total < 2:
        return Outcome(1.0)
    # Store hashes, because the tuples could take a hundred times the memory of the response.
    distinct = len(set(map(hash, zip(*(islice(units, start, None) for start in range(size)), strict=False))))
    return Outcome(distinct / total)
