"""Which inputs one forward pass takes."""

from __future__ import annotations

import random

from services.embedding.tei_python.batches import Limits, choose


def chosen(lengths: list[int], tokens: int = 1000, inputs: int | None = None, waste: int = 20) -> list[int]:
    """The chosen inputs, in order of age."""
    return sorted(choose(lengths, Limits(tokens, inputs, waste)))


def test_the_oldest_is_always_among_them() -> None:
    """Whatever waits, nobody starves: the oldest input is in the next pass."""
    rng = random.Random(0)
    for _ in range(300):
        lengths = [rng.randint(1, 300) for _ in range(rng.randint(1, 40))]
        assert 0 in choose(lengths, Limits(rng.randint(1, 1000), rng.choice([None, 1, 4]), rng.randint(0, 200)))


def test_limits_hold() -> None:
    """No pass has more padded tokens or inputs than it may, or more padding than another pass would cost."""
    rng = random.Random(1)
    for _ in range(300):
        lengths = [rng.randint(1, 300) for _ in range(rng.randint(1, 40))]
        limits = Limits(rng.randint(300, 1000), rng.choice([None, 1, 4]), rng.randint(0, 200))
        batch = [lengths[index] for index in choose(lengths, limits)]
        padded = max(batch) * len(batch)
        assert padded <= limits.tokens
        assert padded - sum(batch) <= limits.waste
        assert len(batch) <= (limits.inputs or len(batch))


def test_like_lengths_go_together() -> None:
    """The oldest takes those of its own length with it, the older first, and leaves others for later passes."""
    assert [0, 2, 4] == chosen([10, 200, 10, 200, 10])
    assert [1, 3] == [index + 1 for index in chosen([200, 10, 200, 10])]
    assert [0, 1] == chosen([10, 10, 10], inputs=2)


def test_a_longer_one_counts_for_all() -> None:
    """A longer input pads every one before it: it is taken only where that costs less than another pass."""
    assert [0, 1, 2, 3] == chosen([10, 10, 10, 12])
    assert [0, 1, 2] == chosen([10, 10, 10, 17])


def test_an_input_longer_than_a_pass_goes_alone() -> None:
    """An input of more tokens than a pass has is read all the same, by itself."""
    assert [0] == chosen([2000, 5, 5])
