"""What samples would cost, with none of them scored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rewardstack.score import Usage

CHARACTERS = 4
"""Bytes of text to a token, where nobody counts them."""


class Quote(NamedTuple):
    """What samples would cost at most.

    Args:
        cached: samples whose scores are in the cache.
        settled: samples without a request, for they have no answer, or are malformed (`unscored`).
        unscored: of these, the malformed.
        usage: requests, prompt tokens, and the most completion tokens; `uncounted` are requests whose prompts nobody
            has counted, so that their tokens are an estimate.
    """

    cached: int = 0
    settled: int = 0
    unscored: int = 0
    usage: Usage = Usage()

    @classmethod
    def total(cls, quotes: Iterable[Quote]) -> Quote:
        """All of them together."""
        quotes = list(quotes)
        return cls(
            sum(one.cached for one in quotes),
            sum(one.settled for one in quotes),
            sum(one.unscored for one in quotes),
            Usage.total(one.usage for one in quotes),
        )


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // CHARACTERS)
