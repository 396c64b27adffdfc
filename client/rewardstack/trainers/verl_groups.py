"""verl: a reward manager for judges that compare groups; it can also leave failed samples out of the update.

Set these keys in addition to those of `rewardstack.trainers.verl` (the last one is optional):

    reward.reward_manager.source=importlib
    reward.reward_manager.name=RewardManager
    reward.reward_manager.module.path=pkg://rewardstack.trainers.verl_groups
    reward.num_workers=1
    +reward.mask_failed=true

In verl, all responses to one prompt in a step have the same `uid`. verl's managers do not pass it to `compute_score`.
This manager extends verl's `naive`: it adds `group_id` (the `uid`) and `completion_tokens` (the number of tokens in the
response) to `extra_info`.

`reward.num_workers` must be 1: verl sends each sample to a random worker, but the members of a group must be in the
same process to be compared. One worker is enough, because it only waits for servers. Written for verl 0.9.1
(`verl/experimental/reward_loop/reward_manager/naive.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

from rewardstack.errors import RequestError, ScoringError, SettingsError
from rewardstack.trainers.columns import TOKENS, merge_options

WORKERS = "reward.num_workers"
MASK = "reward.mask_failed"
GROUP, UID = "group_id", "uid"
NO_STATUS = "the reward function returns no `failed`; use rewardstack.trainers.verl.compute_score with details=true"
OTHER_TRAINER = (
    "only verl's V1 trainer continues after an exception in a reward function; set trainer.use_v1=true, or leave "
    "reward.mask_failed out"
)


class RewardManager(NaiveRewardManager):
    """verl's `naive` reward manager, which adds `group_id` and `completion_tokens` to each sample's `extra_info`.

    With `+reward.mask_failed=true`, `run_single` raises an exception for a failed sample, and verl's V1 trainer trains
    without that response (`_run_prompt` in `verl/trainer/ppo/v1/agent_loop_tq.py`, `replay_buffer.py`):

    - The response is not part of any mean or loss, including KL and entropy; padding with an empty mask replaces it in
      the batch.
    - The response's group has one member fewer. If a group has only one response left, verl's GRPO and RLOO use the
      reward of this response as its advantage. A group without responses is dropped. If all groups of a batch are
      dropped, the run ends.
    - Asynchronous trainers replace the whole group.
    - In validation, verl counts the response as 0 in `acc`, and leaves it out of `acc_success_only`.

    By default, masking is off, and a failed sample has the reward 0, which lowers the mean of its group. Masking has
    disadvantages:

    - If a service fails for one kind of response, e.g. long ones, that kind disappears from training, and the rewards
      do not show it.
    - verl logs a traceback for each failed sample.
    - The keys `failed` in verl's logs stay 0.

    Args:
        config: verl's configuration.
        arguments: as for `NaiveRewardManager`.

    Raises:
        SettingsError: the number of workers is not 1, or `reward.mask_failed` is set for a trainer other than verl's
            V1 trainer.
    """

    def __init__(self, config: Any, *arguments: Any, **named: Any) -> None:
        count = config.reward.num_workers
        if count != 1:
            why = f"is {count}, so the members of a group would be in {count} processes, which cannot compare them"
            raise SettingsError(f"{WORKERS}: {why}; set {WORKERS}=1", WORKERS)
        self._masks = bool(config.reward.get("mask_failed", False))
        if self._masks and not config.trainer.get("use_v1", False):
            raise SettingsError(f"{MASK}: {OTHER_TRAINER}", MASK)
        super().__init__(config, *arguments, **named)

    async def run_single(self, data: Any) -> Any:
        """Return the reward of a sample; see `NaiveRewardManager`.

        Args:
            data: a `DataProto` with the sample; if it has several sequences, the last one is scored.

        Raises:
            ScoringError: the sample failed, and `reward.mask_failed` is set.
            RequestError: `reward.mask_failed` is set, and the reward function does not report `failed`.
        """
        data = data[-1:]
        extra = numpy.empty(1, dtype=object)
        extra[0] = _with_group(data[0])
        data.non_tensor_batch["extra_info"] = extra
        result = await super().run_single(data)
        if self._masks:
            _raise_if_failed(result["reward_extra_info"])
        return result


def _raise_if_failed(details: Mapping[str, Any]) -> None:
    if "failed" not in details:
        raise RequestError(f"{MASK}: {NO_STATUS}", MASK)
    if details["failed"]:
        raise ScoringError(f"the sample failed and is left out of the update ({MASK}); a warning has the cause", [])


def _with_group(item: Any) -> Mapping[str, Any]:
    """Return the sample's `extra_info`, with `group_id` and `completion_tokens` added if it does not have them."""
    length = item.batch["responses"].shape[-1]
    added: dict[str, Any] = {TOKENS: int(item.batch["attention_mask"][-length:].sum())}
    if (uid := item.non_tensor_batch.get(UID)) is not None:
        added[GROUP] = str(uid)
    extra: Mapping[str, Any] = merge_options(item.non_tensor_batch.get("extra_info"), added)
    return extra
