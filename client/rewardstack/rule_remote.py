"""Scores every sample with one reward function; see `docs/rules.md`.

Arguments, results and errors are those of `rewardstack.compute_score`, with two exceptions: `data_source` and
`data_sources` are ignored, and `reward_type` names the function (default: the environment variable `REWARD_TYPE`).
Imports are absolute, because trainers may load this file by its path (verl's `custom_reward_function.path`).
"""

from __future__ import annotations

from typing import Any

from rewardstack import api
from rewardstack.core.imports import import_lock
from rewardstack.routing.sources import RULE_PREFIX


def compute_score(
    data_source: Any = None,
    solution_str: Any = None,
    ground_truth: Any = None,
    extra_info: Any = None,
    *,
    data_sources: Any = None,
    reward_type: str | None = None,
    **arguments: Any,
) -> Any:
    """Return the reward of one sample or of a batch."""
    return api.compute_score(_source(reward_type), solution_str, ground_truth, extra_info, **arguments)


def compute_score_batched(
    data_sources: Any,
    solution_strs: Any,
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    reward_type: str | None = None,
    **arguments: Any,
) -> list[Any]:
    """Return the rewards of a batch in order."""
    return api.compute_score_batched(_source(reward_type), solution_strs, ground_truths, extra_infos, **arguments)


def _source(reward_type: str | None) -> str:
    if reward_type:
        return RULE_PREFIX + reward_type
    with import_lock:
        from rewardstack.settings import default_reward_type
    return RULE_PREFIX + default_reward_type()
