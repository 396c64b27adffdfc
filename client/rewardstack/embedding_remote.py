"""Rewards by an embedding server, in a file that a trainer can load by path.

verl loads `custom_reward_function.path` as a file of its own, hence the absolute imports. Being one service, it ignores
`data_source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardstack import api
from rewardstack.routing.sources import EMBEDDING


def compute_score(
    data_source: Any = None,
    solution_str: Any = None,
    ground_truth: Any = None,
    extra_info: Any = None,
    *,
    data_sources: Any = None,
    **arguments: Any,
) -> Any:
    """The similarity of one sample, or of a batch, to its best reference, from 0 to 1.

    Args:
        data_source: ignored, as is `data_sources`.
        solution_str: what the policy wrote; a list of them means a batch.
        ground_truth: a reference or a list of references.
        extra_info: the options (`docs/embedding.md`), and `server_url`, `api_key`, `timeout` (seconds).
        arguments: as `rewardstack.compute_score` has them.

    Returns:
        As `rewardstack.compute_score` does; raises as it does.
    """
    return api.compute_score(EMBEDDING, solution_str, ground_truth, extra_info, **arguments)


def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    **options: Any,
) -> list[Any]:
    """The similarities of a batch, in order; arguments as `compute_score` has them."""
    return api.compute_score_batched(EMBEDDING, solution_strs, ground_truths, extra_infos, **options)
