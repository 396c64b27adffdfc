"""Compare the members of a group: list the requests to send, and compute the members' values from the verdicts.

Listwise: each request shows all members, and the judge gives each member a score from 0 to 1. A member's value is its
mean score. Pairwise: each request shows two members, and the label probabilities in the reply give the probability that
the first member is better. A member's value is the mean probability that it is better, over all requests that show it.

The order of members depends only on their texts. With two orders, each request is repeated with its members in reverse
order, because judges prefer what they see first (FastChat's LLM-as-a-judge: the first answer wins 52.6 % of GPT-4's
comparisons).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from statistics import fmean
from typing import NamedTuple

from rewardstack.routing.judges import Comparison
from rewardstack.scorers.judge.fences import Fenced, fence

Order = tuple[int, ...]
"""The indices of the members in a request, in the order in which the judge sees them."""
TIE = 0.5
"""The probability that means a tie. In pairwise mode, it is also the value of members that all have the same text,
because no request compares them."""


class Outcome(NamedTuple):
    """The result of a comparison.

    Args:
        values: value of each member, from 0 to 1.
        wins: for each member, the number of compared members that are worse; a tie counts 0.5.
        agreement: share of the pairs with the same winner in both orders; None for a single order, or without pairs.
    """

    values: list[float]
    wins: list[float]
    agreement: float | None


def stable_order(texts: Iterable[str]) -> list[str]:
    """Return the distinct texts, sorted by their hashes."""
    return sorted({*texts}, key=lambda text: blake2b(text.encode("utf-8", "replace"), digest_size=16).digest())


def request_orders(count: int, comparison: Comparison) -> list[Order]:
    """Return the members that each request shows; with two orders, each list or pair is followed by its reverse.

    Args:
        count: number of members; `pairwise` needs no request for a single member.
        comparison: the mode, which pairs to compare, and the number of orders.
    """
    shown: list[Order] = [tuple(range(count))] if count else []
    if comparison.mode == "pairwise":
        shown = [(one, other) for one in range(count) for other in range(one + 1, count)]
        if comparison.pairs == "circular" and count > 2:
            shown = [(index, (index + 1) % count) for index in range(count)]
    is_reversed = comparison.orders == 2 and count > 1
    return [order for one in shown for order in ((one, one[::-1]) if is_reversed else (one,))]


def format_candidates(texts: Sequence[str], order: Order, comparison: Comparison) -> Fenced:
    """Return the candidates for the prompt: each has a number or letter, and a fenced text."""
    names = "AB" if comparison.mode == "pairwise" else [str(index) for index in range(1, len(order) + 1)]
    shown = zip(names, (texts[index] for index in order), strict=True)
    candidates = ((name, text if isinstance(text, Fenced) else fence("candidate", text)) for name, text in shown)
    return Fenced("\n".join(f"Candidate {name}:\n{text}" for name, text in candidates))


def combine_lists(count: int, orders: Sequence[Order], scores: Sequence[Sequence[float]]) -> Outcome:
    """Return the outcome of listwise requests.

    Args:
        count: number of members.
        orders: the members in each list.
        scores: the scores for each list, in the order of its members.
    """
    lists = [dict(zip(order, values, strict=True)) for order, values in zip(orders, scores, strict=True)]
    means = [fmean(one[index] for one in lists) for index in range(count)]
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    margins = {pair: [one[pair[0]] - one[pair[1]] for one in lists] for pair in pairs}
    return Outcome(_round(means), _count_wins(count, margins), _order_agreement(margins))


def combine_pairs(count: int, orders: Sequence[Order], probabilities: Sequence[float]) -> Outcome:
    """Return the outcome of pairwise requests.

    Args:
        count: number of members.
        orders: the two members of each request, in the order in which they are shown.
        probabilities: probability, for each request, that the member shown first is better.
    """
    shares_by_pair: dict[tuple[int, int], list[float]] = {}
    for (first, second), probability in zip(orders, probabilities, strict=True):
        pair, share = ((first, second), probability) if first < second else ((second, first), 1 - probability)
        shares_by_pair.setdefault(pair, []).append(share)
    won: list[list[float]] = [[] for _ in range(count)]
    for (one, other), shares in shares_by_pair.items():
        won[one].append(fmean(shares))
        won[other].append(1 - fmean(shares))
    margins = {pair: [share - TIE for share in shares] for pair, shares in shares_by_pair.items()}
    return Outcome(
        _round([fmean(one) if one else TIE for one in won]), _count_wins(count, margins), _order_agreement(margins)
    )


def _count_wins(count: int, margins: Mapping[tuple[int, int], Sequence[float]]) -> list[float]:
    wins = [0.0] * count
    for (one, other), differences in margins.items():
        share = (1 + _sign(fmean(differences))) / 2
        wins[one] += share
        wins[other] += 1 - share
    return wins


def _order_agreement(margins: Mapping[tuple[int, int], Sequence[float]]) -> float | None:
    both = [differences for differences in margins.values() if len(differences) == 2]
    return fmean(_sign(first) == _sign(second) for first, second in both) if both else None


def _sign(margin: float) -> int:
    """Return 1, 0 or -1; differences below 1e-9 are due to rounding and count as 0."""
    return 0 if abs(margin) < 1e-9 else 1 if margin > 0 else -1


def _round(values: Iterable[float]) -> list[float]:
    """Round the values to 9 decimals, so that equal members share a rank."""
    return [round(value, 9) for value in values]
