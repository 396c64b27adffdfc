"""Scores every response from 0 to 1 by its similarity to the closest reference; see `docs/embedding.md` for options.

Arguments, results and errors are those of `rewardstack.compute_score`, except that `data_source` and `data_sources` are
ignored. Imports are absolute, because trainers may load this file by its path (verl's `custom_reward_function.path`).
"""

from __future__ import annotations

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
    """Return the similarity of one sample or of a batch."""
    return api.compute_score(EMBEDDING, solution_str, ground_truth, extra_info, **arguments)


def compute_score_batched(
    data_sources: Any,
    solution_strs: Any,
    ground_truths: Any = None,
    extra_infos: Any = None,
    **arguments: Any,
) -> list[Any]:
    """Return the similarities of a batch in order."""
    return api.compute_score_batched(EMBEDDING, solution_strs, ground_truths, extra_infos, **arguments)
