"""Samples are cut into batches between groups only."""

from __future__ import annotations

import math

import pytest

from rewardstack.core.groups import split_batches, split_in_half
from rewardstack.errors import RequestError
from tests.support.table import Table


def group_of(sample: str) -> str | None:
    """The letter of a sample, None for a small one."""
    return sample if sample.isupper() else None


CUTS: dict[str, tuple[str, int, float, list[str]]] = {
    "no groups": ("abcdefg", 3, math.inf, ["abc", "def", "g"]),
    "none": ("", 3, math.inf, []),
    "groups that fit": ("AAABBB", 3, math.inf, ["AAA", "BBB"]),
    "groups that are not divided": ("AABBCC", 3, math.inf, ["AA", "BB", "CC"]),
    "one that is larger than a batch": ("aAAAAb", 3, math.inf, ["a", "AAAA", "b"]),
    "both kinds": ("abAAcd", 4, math.inf, ["abAA", "cd"]),
    "by size": ("aAAbb", 9, 2, ["a", "AA", "bb"]),
    "a group in two places of one batch": ("AbA", 3, math.inf, ["AbA"]),
}


def test_cut(table: Table) -> None:
    """Batches hold as many samples as they may, and whole groups."""
    for name, (samples, most, size, expected) in CUTS.items():
        with table.case(name):
            found = split_batches(samples, most, lambda _: 1, int(min(size, 1e9)), group_of)
            assert expected == ["".join(batch) for batch in found]


def test_divided_groups(table: Table) -> None:
    """A group that would be divided, or that is too large for any batch, is refused."""
    with table.case("in two batches"), pytest.raises(RequestError, match="the members of a group are not consecutive"):
        [*split_batches("AAbbAA", 2, len, 100, group_of)]
    with table.case("too large"), pytest.raises(RequestError, match="a group has more than 256 members"):
        [*split_batches("A" * 257, 2, len, 1000, group_of)]


def test_halves(table: Table) -> None:
    """Samples are halved where a group ends; a single group stays whole."""
    for samples, expected in {
        "abcd": ("ab", "cd"),
        "aAAAb": ("a", "AAAb"),
        "AAAA": ("AAAA", ""),
        "a": ("a", ""),
    }.items():
        with table.case(samples):
            first, second = split_in_half(samples, group_of)
            assert expected == ("".join(first), "".join(second))
