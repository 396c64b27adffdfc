"""Cost estimates of samples without scoring them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rewardstack.score import Usage

CHARACTERS = 4
"""Bytes of text per token, for estimates."""


class Quote(NamedTuple):
    """The maximum cost of samples.

    Args:
        cached: number of samples whose scores are in the cache.
        settled: number of samples that need no request, because they have no answer or are malformed.
        unscored: number of the `settled` samples that are malformed.
        usage: requests, prompt tokens, and maximum completion tokens; `uncounted` is the number of requests whose
            tokens are estimated.
        groups: number of groups whose members a judge compares.
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
            sum(one.cached for one in quotes),
            sum(one.settled for one in quotes),
            sum(one.unscored for one in quotes),
            Usage.total(one.usage for one in quotes),
            sum(one.groups for one in quotes),
        )


def estimated_tokens(text: str) -> int:
    """Return the approximate number of tokens of a text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // CHARACTERS)
