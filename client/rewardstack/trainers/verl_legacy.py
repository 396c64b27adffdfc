"""verl up to 0.7.0: the reward of each sample, a float, by the route of its `data_source`.

    custom_reward_function.path=pkg://rewardstack.trainers.verl_legacy
    custom_reward_function.name=compute_score
    reward_model.reward_manager=naive

The managers `naive`, `dapo` and `prime` take `compute_score`; `batch` takes `compute_score_batched`, which asks for all
samples at once. `prime` calls by position, from processes of its own: it needs the `pkg://` path, for it cannot pickle
a function that was loaded by file, and counts a batch as 0 in which anything is no number
(`verl/workers/reward_manager` of 0.7.0). Hence floats, where `rewardstack.trainers.verl` gives dicts; the other
managers take those too, by `+custom_reward_function.reward_kwargs.details=true`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.trainers import verl
from rewardstack.trainers.columns import column_of


def compute_score(
    data_source: str,
    solution_str: Any,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> verl.Reward:
    """The reward of one sample; arguments and errors as `rewardstack.trainers.verl.compute_score` has them."""
    return compute_score_batched([data_source], [solution_str], [ground_truth], [extra_info], **arguments)[0]


def compute_score_batched(
    data_sources: Sequence[str],
    solution_strs: Sequence[Any],
    ground_truths: Sequence[Any] | None = None,
    extra_infos: Sequence[Mapping[str, Any] | None] | None = None,
    **arguments: Any,
) -> list[verl.Reward]:
    """The rewards of a batch, in order: one of everything a sample; otherwise as `compute_score`."""
    call = verl.Arguments(**{"details": False, **arguments})
    count = len(solution_strs)
    truths, extras = column_of(ground_truths, count, "ground_truths"), column_of(extra_infos, count, "extra_infos")
    rows = zip(column_of(data_sources, count, "data_sources"), solution_strs, truths, extras, strict=True)
    scores = api.score([call.request(*row) for row in rows], on_error=call.on_error, timeout=call.timeout)
    return [call.reward(score) for score in scores]
