"""slime: a reward function for single samples and, with `--group-rm`, for whole groups.

    --custom-rm-path rewardstack.trainers.slime.reward
    --rm-type gsm8k

A route is a named way to score, such as `gsm8k`. A sample's route is `data_source` in its metadata, else `rm_type` in
its metadata, else `--rm-type`, else `REWARD_TYPE`. A sample without a score ends the rollout with an error, because
slime accepts only numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack import api
from rewardstack.score import Request
from rewardstack.trainers.columns import TOKENS, add_task, merge_options, require_rewards, route_name

REMEDY = "it is the sample's `label`, which slime reads from the column that --label-key names"


async def reward(args: Any, sample: Any, **_: Any) -> Any:
    """Return the reward of a sample, or of each sample of a group.

    Args:
        args: slime's arguments; only `rm_type` is read.
        sample: slime's `Sample`, or a list of samples for a group.

    Returns:
        A float; for a group, a list of floats in the order of its samples.

    Raises:
        ScoringError: a sample failed or cannot be scored, e.g. because it has no label.
        ConfigError: a route is unknown, or a setting is malformed.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    is_group = isinstance(sample, (list, tuple))
    samples = sample if is_group else [sample]
    scores = await api.ascore([_request(args, sample) for sample in samples], on_error="none")
    rewards = require_rewards(scores, REMEDY, [f"sample {sample.index}: " for sample in samples])
    return rewards if is_group else rewards[0]


def _request(args: Any, sample: Any) -> Request:
    metadata = sample.metadata if isinstance(sample.metadata, Mapping) else {}
    source = route_name(metadata.get("data_source"), metadata.get("rm_type"), args.rm_type)
    length = getattr(sample, "response_length", None)  # 0 until the rollout has counted the tokens
    options = merge_options({TOKENS: length or None}, merge_options(metadata))
    return Request(source, sample.response, sample.label, add_task(options, sample.prompt))
