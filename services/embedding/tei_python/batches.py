"""Which inputs the model reads together: the oldest, and those of about its length.

A forward pass costs what its longest input costs, times the inputs. Batches therefore hold inputs of like length: what
padding may waste is what another pass would cost beside its tokens, which is measured when the server starts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

CPU_TOKENS = 2048
"""On a CPU larger passes take as long per token, or longer as they leave its caches, and all wait for their end."""


@dataclass(frozen=True)
class Limits:
    """Of one forward pass.

    Args:
        tokens: padding counted; a single input may have more.
        inputs: None for no bound.
        waste: tokens of padding that a pass may have.
    """

    tokens: int
    inputs: int | None
    waste: int


def choose(lengths: Sequence[int], limits: Limits) -> list[int]:
    """The inputs of the next forward pass.

    Args:
        lengths: tokens of each input that waits, the oldest first.
        limits: of the pass.

    Returns:
        Their indices: always the oldest, and the nearest in length within the limits.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    first = bisect_left(order, (lengths[0], 0), key=lambda index: (lengths[index], index))
    last, waste, longest = first, 0, lengths[0]
    most = limits.inputs or len(lengths)
    while last - first + 1 < most:
        size = last - first + 1
        shorter = longest - lengths[order[first - 1]] if first else None
        longer = (lengths[order[last + 1]] - longest) * size if last + 1 < len(order) else None
        if shorter is None and longer is None:
            break
        down = longer is None or (shorter is not None and shorter <= longer)
        added = shorter if down else longer
        reach = longest if down else lengths[order[last + 1]]
        if added is None or waste + added > limits.waste or reach * (size + 1) > limits.tokens:
            break
        waste, longest = waste + added, reach
        first, last = (first - 1, last) if down else (first, last + 1)
    return order[first : last + 1]
