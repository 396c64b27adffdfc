"""Split samples into batches without dividing groups, because a judge compares the members of a group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from rewardstack.errors import RequestError

T = TypeVar("T")
GroupOf = Callable[[T], Hashable]
"""Returns the group of a sample; None for a sample that is scored without a group."""
MAX_GROUP_SIZE = 256
"""Maximum number of members of a group."""
REMEDY = "give each group a different `group_id`, and put the members of a group one after another"


def no_group(_: object) -> None:
    """Return None, which means that the sample is scored without a group."""


def split_batches(
    items: Iterable[T], max_items: int, size_of: Callable[[T], int], max_size: int, group_of: GroupOf[T]
) -> Iterator[list[T]]:
    """Yield consecutive items in batches, without dividing a group.

    Args:
        items: the items; the members of a group are consecutive.
        max_items: maximum number of items in a batch, unless a single group has more.
        size_of: returns the size of an item, in the unit of `max_size`, such as characters.
        max_size: maximum total size of the items in a batch, unless a single item or group is larger.
        group_of: returns the group of an item.

    Raises:
        RequestError: a group has more than `MAX_GROUP_SIZE` members, or its members are not consecutive and would be in
            different batches.
    """
    batch: list[T] = []
    size, earlier, groups = 0, set[Hashable](), set[Hashable]()
    for group, members in _consecutive_groups(items, group_of):
        members_size = sum(map(size_of, members))
        if batch and (len(batch) + len(members) > max_items or size + members_size > max_size):
            yield batch
            earlier |= groups
            batch, size, groups = [], 0, set()
        if group is not None and group in earlier:
            why = "the members of a group are not consecutive, so they would be in different batches"
            raise RequestError(f"group_id: {why}; {REMEDY}", "group_id")
        batch += members
        size += members_size
        groups |= {group} if group is not None else set()
    if batch:
        yield batch


def split_in_half(items: Sequence[T], group_of: GroupOf[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Split items into two parts of similar length, without dividing a group.

    The second part is empty if all items belong to a single group, or if there is only one item.
    """
    groups = [group_of(item) for item in items]
    middle = len(items) // 2
    for index in sorted(range(1, len(items)), key=lambda index: abs(index - middle)):
        if groups[index] is None or groups[index] != groups[index - 1]:
            return items[:index], items[index:]
    return items, items[:0]


def _consecutive_groups(items: Iterable[T], group_of: GroupOf[T]) -> Iterator[tuple[Hashable, list[T]]]:
    """Yield each group with its consecutive members, and None with each item that has no group."""
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
        if len(run) > MAX_GROUP_SIZE:
            raise RequestError(f"group_id: a group has more than {MAX_GROUP_SIZE} members; {REMEDY}", "group_id")
    if run:
        yield before, run
