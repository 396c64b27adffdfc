"""verl: a reward manager that names the group of each sample, and can leave failed samples out of the update.

Set these beside the two lines of `rewardstack.trainers.verl`:

    reward.reward_manager.source=importlib
    reward.reward_manager.name=RewardManager
    reward.reward_manager.module.path=pkg://rewardstack.trainers.verl_groups
    reward.num_workers=1
    +reward.mask_failed=true

The last line is optional.

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

from rewardstack.errors import RequestError, ScoringError, SettingsError
from rewardstack.trainers.columns import TOKENS, options_of

WORKERS = "reward.num_workers"
MASK = "reward.mask_failed"
GROUP, UID = "group_id", "uid"
NO_STATUS = "the reward function returns no `failed`; use rewardstack.trainers.verl.compute_score with details=true"
OTHER_TRAINER = (
    "only verl's V1 trainer continues when a reward raises; set trainer.use_v1=true, or leave reward.mask_failed out"
)


class RewardManager(NaiveRewardManager):
    """verl's `naive` reward manager, which adds `group_id` and `completion_tokens` to each sample's `extra_info`.

    With `+reward.mask_failed=true` a failed sample takes no part in the update: `run_single` raises, and verl's V1
    trainer trains without that response (`_run_prompt` in `verl/trainer/ppo/v1/agent_loop_tq.py`, `replay_buffer.py`).
    It counts in no mean and no loss, KL and entropy included; padding with an empty mask takes its place in the batch.
    Its group is smaller by one: a response that is left alone in its group has its reward as advantage (verl's GRPO and
    RLOO), a group without any response is absent, and a batch without any ends the run. Asynchronous trainers replace
    the whole group. In validation verl counts it as 0 in `acc`, and leaves it out of `acc_success_only`.

    The default is off, as in verl: then a failed sample has the reward 0, which pulls down the mean of its group. With
    masking, a service that fails for one kind of response, such as long ones, removes that kind from training without a
    trace in the rewards, verl logs a traceback for each failed sample, and the keys `failed` in verl's logs stay 0.

    Args:
        config: verl's configuration.
        arguments: as for `NaiveRewardManager`.

    Raises:
        SettingsError: there is more than one worker, or `reward.mask_failed` is set for another trainer.
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
        """Return the reward of a sample as `NaiveRewardManager` does.

        Args:
            data: a `DataProto` with the sample; of several sequences the last one is scored.

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
    """Return the sample's `extra_info` with its group and its number of tokens; own fields take precedence."""
    length = item.batch["responses"].shape[-1]
    found: dict[str, Any] = {TOKENS: int(item.batch["attention_mask"][-length:].sum())}
    if (uid := item.non_tensor_batch.get(UID)) is not None:
        found[GROUP] = str(uid)
    extra: Mapping[str, Any] = options_of(item.non_tensor_batch.get("extra_info"), found)
    return extra
