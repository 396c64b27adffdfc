"""slime's rewards by a function of its own path, for single samples and, under `--group-rm`, for whole groups.

    --custom-rm-path rewardstack.trainers.slime.reward
    --rm-type gsm8k

A sample's route is the `data_source` of its metadata, else their `rm_type`, else `--rm-type`, else `REWARD_TYPE`.
What the infrastructure failed is asked for again as often and after such pauses as slime's own `remote_rm` does it
(`slime/rollout/rm_hub/__init__.py`); then the rollout ends with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rewardstack import api
from rewardstack.errors import ScoringError
from rewardstack.score import NO_REFERENCE, Request, Score
from rewardstack.trainers.columns import options_of, source_of, with_task

PAUSES = (1, 2, 4, 8, 16, 30, 30, 30, 30)
"""Seconds before each further try."""


async def reward(args: Any, sample: Any, **_: Any) -> Any:
    """The reward of a sample, or of each of a group.

    Args:
        args: slime's own, of which `rm_type` is read.
        sample: a `Sample`, or a list of them; its prompt, response, label and metadata are read.

    Returns:
        A float, or a list of them in order.

    Raises:
        ScoringError: a sample cannot be judged, such as one without a label, or has failed at the last try.
        ConfigError: a route is unknown, or a setting malformed.
    """
    is_group = isinstance(sample, (list, tuple))
    samples = sample if is_group else [sample]
    scores = await _scores([_request(args, one) for one in samples])
    for at, score in enumerate(scores):
        if score.value is None:
            raise ScoringError(_complaint(samples[at], score), scores)
    rewards = [score.value for score in scores]
    return rewards if is_group else rewards[0]


async def _scores(requests: list[Request]) -> list[Score]:
    scores = await api.ascore(requests, on_error="none")
    for pause in PAUSES:
        failed = [at for at, score in enumerate(scores) if score.status == "failed"]
        if not failed:
            break
        await asyncio.sleep(pause)
        again = await api.ascore([requests[at] for at in failed], on_error="none")
        for at, score in zip(failed, again, strict=True):
            scores[at] = score
    return scores


def _request(args: Any, sample: Any) -> Request:
    metadata = sample.metadata if isinstance(sample.metadata, Mapping) else {}
    source = source_of(metadata.get("data_source"), metadata.get("rm_type"), args.rm_type)
    return Request(source, sample.response, sample.label, with_task(options_of(metadata), sample.prompt))


def _complaint(sample: Any, score: Score) -> str:
    where = f"sample {sample.index}: {score.status}: {score.reason}"
    if score.reason != NO_REFERENCE:
        return where
    return f"{where}; it is the sample's `label`, the column of the data that --label-key names"
