"""How the members of a group are compared: which requests are sent, and what their verdicts say about each member.

Listwise: each request shows all members, and gives each a score from 0 to 1; a member's value is its mean score.
Pairwise: each request shows two members, and its label probabilities say how likely the first is better; a member's
value is the mean of p over its pairs and both orders, which for all pairs is the sum of p / (n - 1). Members are shown
in an order that depends on their texts alone. The second order is the reverse, because judges prefer what they see
first (FastChat's LLM-as-a-judge: the first answer wins 52.6 % of GPT-4's comparisons).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from statistics import fmean
from typing import NamedTuple

from rewardstack.routing.judges import Comparison
from rewardstack.scorers.judge.fences import Fenced, fence

Order = tuple[int, ...]
"""The members that a request shows, by position, in this order."""
TIE = 0.5
"""The value of a member that is compared with none, and the probability that one of two equal members is better."""


class Outcome(NamedTuple):
    """The result of a comparison.

    Args:
        values: value of each member, from 0 to 1.
        wins: number of members that each member is better than, as far as they were compared; a tie counts 0.5.
        agreement: share of the pairs about which both orders agree; None for a single order, or without pairs.
    """

    values: list[float]
    wins: list[float]
    agreement: float | None


def shown_order(texts: Iterable[str]) -> list[str]:
    """Return the distinct texts in an order that depends on their hashes alone."""
    return sorted({*texts}, key=lambda text: blake2b(text.encode("utf-8", "replace"), digest_size=16).digest())


def orders_of(count: int, how: Comparison) -> list[Order]:
    """Return the members that each request shows; for each list or pair, its reverse follows at once.

    Args:
        count: number of members; without a second one, `pairwise` needs no request.
        how: the comparison.
    """
    shown: list[Order] = [tuple(range(count))] if count else []
    if how.mode == "pairwise":
        shown = [(one, other) for one in range(count) for other in range(one + 1, count)]
        if how.pairs == "circular" and count > 2:
            shown = [(at, (at + 1) % count) for at in range(count)]
    is_reversed = how.orders == 2 and count > 1
    return [order for one in shown for order in ((one, one[::-1]) if is_reversed else (one,))]


def block(texts: Sequence[str], order: Order, how: Comparison) -> Fenced:
    """Return the part of the prompt with the candidates, each fenced below its number or letter."""
    names = "AB" if how.mode == "pairwise" else [str(at) for at in range(1, len(order) + 1)]
    shown = zip(names, (texts[at] for at in order), strict=True)
    candidates = ((name, text if isinstance(text, Fenced) else fence("candidate", text)) for name, text in shown)
    return Fenced("\n".join(f"Candidate {name}:\n{text}" for name, text in candidates))


def of_lists(count: int, orders: Sequence[Order], scores: Sequence[Sequence[float]]) -> Outcome:
    """Return the outcome of lists.

    Args:
        count: number of members.
        orders: the members in each list.
        scores: the scores in each list, in its order.
    """
    lists = [dict(zip(order, found, strict=True)) for order, found in zip(orders, scores, strict=True)]
    values = [fmean(one[at] for one in lists) for at in range(count)]
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    margins = {pair: [one[pair[0]] - one[pair[1]] for one in lists] for pair in pairs}
    return Outcome(_rounded(values), _wins(count, margins), _agreement(margins))


def of_pairs(count: int, orders: Sequence[Order], chances: Sequence[float]) -> Outcome:
    """Return the outcome of pairs.

    Args:
        count: number of members.
        orders: the two members of each request, in the order in which they are shown.
        chances: probability, for each request, that the member shown first is better.
    """
    found: dict[tuple[int, int], list[float]] = {}
    for (first, second), chance in zip(orders, chances, strict=True):
        pair, share = ((first, second), chance) if first < second else ((second, first), 1 - chance)
        found.setdefault(pair, []).append(share)
    won: list[list[float]] = [[] for _ in range(count)]
    for (one, other), shares in found.items():
        won[one].append(fmean(shares))
        won[other].append(1 - fmean(shares))
    margins = {pair: [share - TIE for share in shares] for pair, shares in found.items()}
    return Outcome(_rounded([fmean(one) if one else TIE for one in won]), _wins(count, margins), _agreement(margins))


def _wins(count: int, margins: Mapping[tuple[int, int], Sequence[float]]) -> list[float]:
    wins = [0.0] * count
    for (one, other), found in margins.items():
        share = (1 + _sign(fmean(found))) / 2
        wins[one] += share
        wins[other] += 1 - share
    return wins


def _agreement(margins: Mapping[tuple[int, int], Sequence[float]]) -> float | None:
    both = [found for found in margins.values() if len(found) == 2]
    return fmean(_sign(first) == _sign(second) for first, second in both) if both else None


def _sign(margin: float) -> int:
    """Return 1, 0 or -1; differences due to rounding count as 0."""
    return 0 if abs(margin) < 1e-9 else 1 if margin > 0 else -1


def _rounded(values: Iterable[float]) -> list[float]:
    """Return the values without the differences due to rounding, so that equal members share a rank."""
    return [round(value, 9) for value in values]
