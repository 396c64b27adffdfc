"""Reward functions for TRL's `GRPOTrainer` and `RLOOTrainer`, one line each.

    from rewardstack.trainers.trl import reward_func

    GRPOTrainer(..., reward_funcs=[reward_func("gsm8k"), reward_func("llm_judge_remote")])

TRL calls `f(prompts=…, completions=…, completion_ids=…, trainer_state=…, log_extra=…, log_metric=…, <a list per
column of the data set>)` and accepts a number or None per completion (`_calculate_rewards` in
`trl/trainer/grpo_trainer.py`). None becomes NaN and is left out: a completion without any value has the advantage 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.score import STATUSES, OnError, Score
from rewardstack.trainers.columns import Columns, names_of

REMEDY = "if TRL drops it, set GRPOConfig(remove_unused_columns=False)"


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
    """Return a reward function for `reward_funcs`.

    Args:
        data_source: the route; None: the column `data_source` names it, row by row.
        reference: the column with the references; None if the route needs none.
        columns: further columns that the route reads, as fields of `extra_info`.
        extra_info: fields for every completion, such as `{"target_length": 40}`. The prompt is the field `question`.
            The data set's column of this name takes precedence, and `columns` over both.
        on_error: reward of a completion without a score; by default None, which TRL leaves out.
        timeout: seconds after which a batch ends in any case; None: as long as services make progress.
        name: of the reward in TRL's logs; None: the `data_source`, or `rewardstack`.
        blocking: return a plain function, for a TRL that awaits none. By default TRL runs all its async functions
            concurrently.

    Raises:
        RequestError: `columns` is a string.
    """
    kind = BlockingRewardFunc if blocking else AsyncRewardFunc
    read = Columns(data_source, reference, names_of(columns, "columns"), dict(extra_info or {}), REMEDY)
    return kind(read, on_error, timeout, name or data_source or "rewardstack")


class RewardFunc:
    """A picklable reward function, which TRL's async GRPO sends to another process.

    Args:
        columns: the columns to read.
        on_error: reward of a completion without a score.
        timeout: seconds after which a batch ends.
        name: in TRL's logs.
    """

    def __init__(self, columns: Columns, on_error: OnError, timeout: float | None, name: str) -> None:
        self._columns, self._on_error, self._timeout, self.__name__ = columns, on_error, timeout, name

    def _rewards(self, scores: Sequence[Score], given: Mapping[str, Any]) -> list[float | None]:
        """Return the rewards; log the number of samples per status as metrics, and the reasons as a column."""
        if log_metric := given.get("log_metric"):
            for status in STATUSES:
                log_metric(f"rewards/{self.__name__}/{status}", float(sum(one.status == status for one in scores)))
        if log_extra := given.get("log_extra"):
            log_extra(f"{self.__name__}_reason", [one.reason for one in scores])
        return [one.value for one in scores]


class AsyncRewardFunc(RewardFunc):
    """A reward function to be awaited."""

    async def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """Return a reward or None for each completion; `given` has the columns and TRL's other arguments.

        Raises:
            ConfigError: a column is missing, or a source unknown. This ends the training.
            ScoringError: a sample has no score and `on_error` is "raise".
            FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
        """
        requests = self._columns.requests(prompts, completions, given, given.get("completion_ids"))
        return self._rewards(await api.ascore(requests, on_error=self._on_error, timeout=self._timeout), given)

    # TRL below 1.14 only awaits what `inspect.iscoroutinefunction` accepts. That does not look at `__call__`, but
    # treats an object with these attributes as a function.
    __code__, __defaults__, __kwdefaults__ = __call__.__code__, None, None


class BlockingRewardFunc(RewardFunc):
    """A reward function to be called."""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """Return what `AsyncRewardFunc` does."""
        requests = self._columns.requests(prompts, completions, given, given.get("completion_ids"))
        return self._rewards(api.score(requests, on_error=self._on_error, timeout=self._timeout), given)
