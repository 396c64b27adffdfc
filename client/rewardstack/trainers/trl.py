"""Reward functions for TRL's `GRPOTrainer` and `RLOOTrainer`, one line each:

    from rewardstack.trainers.trl import reward_func

    GRPOTrainer(..., reward_funcs=[reward_func("gsm8k"), reward_func("llm_judge_remote")])

TRL calls `f(prompts=…, completions=…, completion_ids=…, trainer_state=…, log_extra=…, log_metric=…, <a list for each
column of the data set>)` and takes a number, or None, for each completion (`_calculate_rewards` in
`trl/trainer/grpo_trainer.py`, 1.16). None becomes NaN, which counts nowhere: a completion without any value has the
advantage 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.score import STATUSES, OnError, Score
from rewardstack.trainers.columns import Columns, names_of

REMEDY = "give reference=None if none is needed; GRPOConfig(remove_unused_columns=False) keeps all columns"


def reward_func(
    data_source: str | None = None,
    *,
    reference: str | None = "answer",
    columns: Iterable[str] = (),
    extra_info: Mapping[str, Any] | None = None,
    on_error: OnError = "none",
    timeout: float | None = None,
    name: str | None = None,
    blocking: bool = False,
) -> RewardFunc:
    """A reward function for `reward_funcs`.

    Args:
        data_source: names the route; None: the data set's column `data_source` does, row by row.
        reference: the column that holds references; None where the route needs none.
        columns: further ones that the route reads, as fields of `extra_info`.
        extra_info: the same for every completion, such as `{"target_length": 40}`; the data set's column of this name
            goes before it, and `columns` before both. The prompt is there as `question`.
        on_error: what a completion without a score is worth; by default None, which TRL leaves out.
        timeout: seconds after which a batch ends whatever happens; None: as long as services make progress.
        name: of the reward in TRL's logs; None: the `data_source`, or `rewardstack`.
        blocking: False: a function to be awaited, which TRL runs beside its other ones of this kind; True: a plain one,
            for a TRL that awaits none.

    Raises:
        ConfigError: by the function, where a column is not there or a source unknown. It ends the training.
        ScoringError: by the function, under `on_error="raise"`.
    """
    kind = BlockingRewardFunc if blocking else AsyncRewardFunc
    read = Columns(data_source, reference, names_of(columns, "columns"), dict(extra_info or {}), REMEDY)
    return kind(read, on_error, timeout, name or data_source or "rewardstack")


class RewardFunc:
    """What both kinds of function share; it can be pickled.

    Args:
        columns: that are read.
        on_error: what a completion without a score is worth.
        timeout: seconds after which a batch ends.
        name: in TRL's logs.
    """

    def __init__(self, columns: Columns, on_error: OnError, timeout: float | None, name: str) -> None:
        self._columns, self._on_error, self._timeout, self.__name__ = columns, on_error, timeout, name

    def _rewards(self, scores: Sequence[Score], given: Mapping[str, Any]) -> list[float | None]:
        """The values; how many have each status goes to TRL's metrics, and why to its table of completions."""
        if log_metric := given.get("log_metric"):
            for status in STATUSES:
                log_metric(f"rewards/{self.__name__}/{status}", float(sum(one.status == status for one in scores)))
        if log_extra := given.get("log_extra"):
            log_extra(f"{self.__name__}_reason", [one.reason for one in scores])
        return [one.value for one in scores]


class AsyncRewardFunc(RewardFunc):
    """To be awaited."""

    async def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """A reward for each completion, or None; `given` is what else TRL hands over."""
        requests = self._columns.requests(prompts, completions, given)
        return self._rewards(await api.ascore(requests, on_error=self._on_error, timeout=self._timeout), given)


class BlockingRewardFunc(RewardFunc):
    """To be called."""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """A reward for each completion, or None; `given` is what else TRL hands over."""
        requests = self._columns.requests(prompts, completions, given)
        return self._rewards(api.score(requests, on_error=self._on_error, timeout=self._timeout), given)
