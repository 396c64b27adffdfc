"""Reward functions for TRL's `GRPOTrainer` and `RLOOTrainer`, one line each.

    from rewardstack.trainers.trl import reward_func

    GRPOTrainer(..., reward_funcs=[reward_func("gsm8k"), reward_func("llm_judge_remote")])

TRL calls `f(prompts=…, completions=…, completion_ids=…, trainer_state=…, log_extra=…, log_metric=…, <a list per
column of the data set>)` and accepts a number or None per completion (`_calculate_rewards` in
`trl/trainer/grpo_trainer.py`). None becomes NaN, which TRL ignores. A completion without any reward has the advantage
0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.core.reward_summary import RewardSummary
from rewardstack.score import STATUSES, OnError, Request, Score
from rewardstack.trainers.columns import Columns, names_of

REMEDY = "if TRL drops it, set GRPOConfig(remove_unused_columns=False)"

GROUPS = "set the batch sizes per device to multiples of num_generations, and group_size to num_generations"
"""What to do if a prompt's completions are divided over processes or batches."""


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
    """Return a reward function for the trainer's argument `reward_funcs`.

    Args:
        data_source: the route, i.e. how to score; None to read it from the column `data_source` of each row.
        reference: the column with the references; None if the route needs none.
        columns: further columns that become fields of `extra_info` for the route.
        extra_info: fields of `extra_info` for every completion, such as `{"target_length": 40}`. The user's last
            message is added as `question`. The data set's column `extra_info` takes precedence over these fields, and
            `columns` over both.
        on_error: reward of a completion without a score; by default None, which TRL ignores.
        timeout: seconds after which scoring of a batch ends; None to wait as long as services make progress.
        name: the reward's name in TRL's logs; None for the `data_source`, or `rewardstack` without one.
        blocking: whether to return a synchronous function, for versions of TRL that cannot await. The default is an
            async function; TRL runs its async functions concurrently.

    Raises:
        RequestError: `columns` is a string.
    """
    kind = BlockingRewardFunc if blocking else AsyncRewardFunc
    read = Columns(data_source, reference, names_of(columns, "columns"), dict(extra_info or {}), REMEDY)
    return kind(read, on_error, timeout, name or data_source or "rewardstack")


class RewardFunc:
    """Base class of the reward functions; picklable, because TRL's async GRPO sends them to another process.

    Args:
        columns: the columns to read.
        on_error: reward of a completion without a score.
        timeout: seconds after which scoring of a batch ends; None to wait as long as services make progress.
        name: the reward's name in TRL's logs.
    """

    def __init__(self, columns: Columns, on_error: OnError, timeout: float | None, name: str) -> None:
        self._columns, self._on_error, self._timeout, self.__name__ = columns, on_error, timeout, name

    def _requests(self, prompts: Sequence[Any], completions: Sequence[Any], given: Mapping[str, Any]) -> list[Request]:
        requests = self._columns.requests(prompts, completions, given, given.get("completion_ids"))
        api.check_groups(requests, GROUPS)
        return requests

    def _rewards(
        self, requests: Sequence[Request], scores: Sequence[Score], given: Mapping[str, Any]
    ) -> list[float | None]:
        """Return the rewards; log metrics that TRL does not log itself, and the reasons as a column.

        The metrics are the number of samples per status, the share of zeros, and the mean of each part.
        """
        if log_metric := given.get("log_metric"):
            for status in STATUSES:
                log_metric(f"rewards/{self.__name__}/{status}", float(sum(one.status == status for one in scores)))
            if summary := RewardSummary.from_batch(requests, scores):
                log_metric(f"rewards/{self.__name__}/zeros", summary.zeros / summary.size)
                for part, mean in summary.parts.items():
                    log_metric(f"rewards/{self.__name__}/part/{part}", mean)
        if log_extra := given.get("log_extra"):
            log_extra(f"{self.__name__}_reason", [one.reason for one in scores])
        return [one.value for one in scores]


class AsyncRewardFunc(RewardFunc):
    """An async reward function."""

    async def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """Return a reward or None for each completion; `given` has the columns and TRL's other arguments.

        Raises:
            ConfigError: a column is missing, or a route is unknown. This ends the training.
            ScoringError: a sample has no score and `on_error` is "raise".
            FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
        """
        requests = self._requests(prompts, completions, given)
        scores = await api.ascore(requests, on_error=self._on_error, timeout=self._timeout)
        return self._rewards(requests, scores, given)

    # TRL below 1.14 awaits a function only if `inspect.iscoroutinefunction` accepts it. `inspect` ignores `__call__`,
    # but treats an object with these attributes as a function.
    __code__, __defaults__, __kwdefaults__ = __call__.__code__, None, None


class BlockingRewardFunc(RewardFunc):
    """A synchronous reward function."""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """Return a reward or None for each completion, like `AsyncRewardFunc`."""
        requests = self._requests(prompts, completions, given)
        scores = api.score(requests, on_error=self._on_error, timeout=self._timeout)
        return self._rewards(requests, scores, given)
