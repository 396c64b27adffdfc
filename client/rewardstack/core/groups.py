"""Cut samples into batches only between groups, whose members a judge compares."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from rewardstack.errors import RequestError

T = TypeVar("T")
GroupOf = Callable[[T], Hashable]
"""Returns the group of a sample; None for a sample that is scored alone."""
LARGEST = 256
"""Maximum number of members of a group."""
REMEDY = "give each group a `group_id` of its own, and put its members one after another"


def alone(_: object) -> None:
    """Return None, the group of a sample that is scored alone."""


def cut(
    items: Iterable[T], most: int, size_of: Callable[[T], int], most_size: int, group_of: GroupOf[T]
) -> Iterator[list[T]]:
    """Yield consecutive items in batches, without dividing a group.

    Args:
        items: the items; the members of a group are consecutive.
        most: maximum number of items in a batch, unless a single group has more.
        size_of: returns the size of an item.
        most_size: maximum size of a batch's items, unless a single item or group has more.
        group_of: returns the group of an item.

    Raises:
        RequestError: a group has more than `LARGEST` members, or members in two batches.
    """
    batch: list[T] = []
    size, ended, current = 0, set[Hashable](), set[Hashable]()
    for group, run in _runs(items, group_of):
        added = sum(map(size_of, run))
        if batch and (len(batch) + len(run) > most or size + added > most_size):
            yield batch
            ended |= current
            batch, size, current = [], 0, set()
        if group is not None and group in ended:
            why = "a group has members in several places, so it would be divided"
            raise RequestError(f"group_id: {why}; {REMEDY}", "group_id")
        batch += run
        size += added
        current |= {group} if group is not None else set()
    if batch:
        yield batch


def halves(items: Sequence[T], group_of: GroupOf[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Return two parts of about the same length, without dividing a group; the second is empty for a single group."""
    groups = [group_of(item) for item in items]
    middle = len(items) // 2
    for at in sorted(range(1, len(items)), key=lambda at: abs(at - middle)):
        if groups[at] is None or groups[at] != groups[at - 1]:
            return items[:at], items[at:]
    return items, items[:0]


def _runs(items: Iterable[T], group_of: GroupOf[T]) -> Iterator[tuple[Hashable, list[T]]]:
    """Yield each group with its consecutive members; None with each item that is scored alone."""
    run: list[T] = []
    before: Hashable = None
    for item in items:
        group = group_of(item)
        if run and group != before:
            yield before, run
            run = []
        if group is None:
            yield None, [item]
            continue
        run.append(item)
        before = group
        if len(run) > LARGEST:
            raise RequestError(f"group_id: a group has more than {LARGEST} members; {REMEDY}", "group_id")
    if run:
        yield before, run
