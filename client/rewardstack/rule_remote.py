"""Rewards from the reward server's rules, in a file that a trainer can load by path.

verl loads `custom_reward_function.path` as a file of its own, hence the absolute imports. Being one service, it ignores
`data_source`; which reward function is asked is `reward_type`, else the environment's `REWARD_TYPE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardstack import api
from rewardstack.core.imports import importing
from rewardstack.routing.sources import RULE_PREFIX


def compute_score(
    data_source: Any = None,
    solution_str: Any = None,
    ground_truth: Any = None,
    extra_info: Any = None,
    *,
    reward_type: str | None = None,
    data_sources: Any = None,
    **arguments: Any,
) -> Any:
    """The reward of one sample or of a batch by one reward function.

    Args:
        data_source: ignored, as is `data_sources`.
        solution_str: what the policy wrote; a list of them means a batch.
        ground_truth: a reference or a list of references.
        extra_info: the function's options, and `server_url`, `api_key`, `timeout` (seconds).
        reward_type: name of the function; None: `REWARD_TYPE`, by default `math_verifier`.
        arguments: as `rewardstack.compute_score` has them.

    Returns:
        As `rewardstack.compute_score` does; raises as it does.
    """
    return api.compute_score(_source(reward_type), solution_str, ground_truth, extra_info, **arguments)


def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    reward_type: str | None = None,
    **options: Any,
) -> list[Any]:
    """The rewards of a batch by one reward function, in order; arguments as `compute_score` has them."""
    return api.compute_score_batched(_source(reward_type), solution_strs, ground_truths, extra_infos, **options)


def _source(reward_type: str | None) -> str:
    if reward_type:
        return RULE_PREFIX + reward_type
    with importing:
        from rewardstack.settings import Settings
    return RULE_PREFIX + Settings.from_env().reward_type
