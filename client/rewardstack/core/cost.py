"""Estimate what scoring samples costs, without scoring them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rewardstack.score import Usage

BYTES_PER_TOKEN = 4
"""Assumed number of bytes of text per token."""


class Quote(NamedTuple):
    """The estimated cost of samples; completions are counted at their maximum length.

    Args:
        cached: number of samples whose scores are in the cache.
        settled: number of samples whose score is known before the scorer is called: `unscored` samples, and samples
            whose response has no answer.
        unscored: number of the `settled` samples that cannot be scored, for example because they are malformed.
        usage: requests, prompt tokens, and maximum completion tokens. `uncounted` is the number of requests whose
            prompt tokens are estimated from the length of the text; the server counted those of the other requests.
        groups: number of groups that a judge would compare; samples whose scores are in the cache are left out.
    """

    cached: int = 0
    settled: int = 0
    unscored: int = 0
    usage: Usage = Usage()
    groups: int = 0

    @classmethod
    def total(cls, quotes: Iterable[Quote]) -> Quote:
        """Return the sum of the quotes."""
        quotes = list(quotes)
        return cls(
            sum(quote.cached for quote in quotes),
            sum(quote.settled for quote in quotes),
            sum(quote.unscored for quote in quotes),
            Usage.total(quote.usage for quote in quotes),
            sum(quote.groups for quote in quotes),
        )


def estimate_tokens(text: str) -> int:
    """Return the approximate number of tokens of a text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
