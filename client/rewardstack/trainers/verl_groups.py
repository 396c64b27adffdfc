"""verl: a reward manager that names the group of each sample, for a judge that compares the members of groups.

Set these beside the two lines of `rewardstack.trainers.verl`:

    reward.reward_manager.source=importlib
    reward.reward_manager.name=RewardManager
    reward.reward_manager.module.path=pkg://rewardstack.trainers.verl_groups
    reward.num_workers=1

verl's managers do not pass `uid`, which is the same for all responses to a prompt of a step, to `compute_score`. This
one is verl's `naive` and adds two fields to `extra_info`: `group_id`, and `completion_tokens`, the number of tokens in
the response. Members of a group must meet in one process, and verl sends each sample to a random worker, so there must
be a single worker; it waits for servers, so one is enough. Written for verl 0.9.1
(`verl/experimental/reward_loop/reward_manager/naive.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

from rewardstack.errors import SettingsError
from rewardstack.trainers.columns import TOKENS, options_of

WORKERS = "reward.num_workers"
GROUP, UID = "group_id", "uid"


class RewardManager(NaiveRewardManager):
    """verl's `naive` reward manager, which adds `group_id` and `completion_tokens` to each sample's `extra_info`.

    Args:
        config: verl's configuration.
        arguments: as for `NaiveRewardManager`.

    Raises:
        SettingsError: there is more than one worker.
    """

    def __init__(self, config: Any, *arguments: Any, **named: Any) -> None:
        count = config.reward.num_workers
        if count != 1:
            why = f"is {count}, so the members of a group would be in {count} processes, which cannot compare them"
            raise SettingsError(f"{WORKERS}: {why}; set {WORKERS}=1", WORKERS)
        super().__init__(config, *arguments, **named)

    async def run_single(self, data: Any) -> Any:
        """Return the reward of a sample as `NaiveRewardManager` does.

        Args:
            data: a `DataProto` with the sample; of several sequences the last one is scored.
        """
        data = data[-1:]
        extra = numpy.empty(1, dtype=object)
        extra[0] = _with_group(data[0])
        data.non_tensor_batch["extra_info"] = extra
        return await super().run_single(data)


def _with_group(item: Any) -> Mapping[str, Any]:
    """Return the sample's `extra_info` with its group and its number of tokens; own fields take precedence."""
    length = item.batch["responses"].shape[-1]
    found: dict[str, Any] = {TOKENS: int(item.batch["attention_mask"][-length:].sum())}
    if (uid := item.non_tensor_batch.get(UID)) is not None:
        found[GROUP] = str(uid)
    extra: Mapping[str, Any] = options_of(item.non_tensor_batch.get("extra_info"), found)
    return extra
