"""TRL: create reward functions for `GRPOTrainer` and `RLOOTrainer`.

    from rewardstack.trainers.trl import reward_func

    GRPOTrainer(..., reward_funcs=[reward_func("gsm8k"), reward_func("llm_judge_remote")])

TRL calls `f(prompts=…, completions=…, completion_ids=…, trainer_state=…, log_extra=…, log_metric=…, <a list per
column of the data set>)` and accepts a number or None per completion (`_calculate_rewards` in
`trl/trainer/grpo_trainer.py`). TRL ignores None. If no reward function returns a number for a completion, its advantage
is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.core.reward_summary import RewardSummary
from rewardstack.score import STATUSES, OnError, Request, Score
from rewardstack.trainers.columns import Columns, as_names, as_options, transcript_option

REMEDY = "if TRL drops the column, set GRPOConfig(remove_unused_columns=False)"

GROUPS = (
    "set group_size to num_generations (in an evaluation: num_generations_eval), and the batch sizes per device to "
    "multiples of that number"
)
"""The remedy if a prompt's completions are divided over processes or batches."""


def reward_func(
    data_source: str | None = None,
    *,
    reference: str | None = "answer",
    columns: Iterable[str] = (),
    extra_info: Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    on_error: OnError = "none",
    timeout: float | None = None,
    name: str | None = None,
    blocking: bool = False,
) -> RewardFunc:
    """Return a reward function for the trainer's argument `reward_funcs`.

    Args:
        data_source: the route (how to score); None to read it from the column `data_source` of each row.
        reference: the column with the references; None if the route needs none.
        columns: further columns that become fields of `extra_info` for the route.
        extra_info: fields of `extra_info` for every completion, such as `{"target_length": 40}`. The last user message
            is added as `question`. The data set's column `extra_info` takes precedence over these fields, and `columns`
            over both.
        tokenizer: the policy's tokenizer; its chat template says how to split completions that are strings into turns.
            None to look for any known template.
        on_error: error policy for completions without a score; with `none`, their reward is None, which TRL ignores.
        timeout: time limit for a batch in seconds; None for no limit besides the timeouts of the services.
        name: the reward's name in TRL's logs. If it is None, the name is the argument `data_source`; if that is None,
            too, the name is `rewardstack`.
        blocking: whether to return a synchronous function, for versions of TRL that do not support async functions.
            TRL runs async functions concurrently.

    Raises:
        RequestError: `columns` is a string.
    """
    kind = BlockingRewardFunc if blocking else AsyncRewardFunc
    options = {**transcript_option(tokenizer), **as_options(extra_info, "extra_info")}
    columns_to_read = Columns(data_source, reference, as_names(columns, "columns"), options, REMEDY)
    return kind(columns_to_read, on_error, timeout, name or data_source or "rewardstack")


class RewardFunc:
    """Base class of the reward functions; picklable, because TRL's async GRPO sends them to another process.

    Args:
        columns: the columns to read.
        on_error: error policy for completions without a score.
        timeout: time limit for a batch in seconds; None for no limit besides the timeouts of the services.
        name: the reward's name in TRL's logs.
    """

    def __init__(self, columns: Columns, on_error: OnError, timeout: float | None, name: str) -> None:
        self._columns, self._on_error, self._timeout, self.__name__ = columns, on_error, timeout, name

    def _requests(
        self, prompts: Sequence[Any], completions: Sequence[Any], arguments: Mapping[str, Any]
    ) -> list[Request]:
        requests = self._columns.requests(prompts, completions, arguments, arguments.get("completion_ids"))
        api.check_groups(requests, GROUPS)
        return requests

    def _rewards(
        self, requests: Sequence[Request], scores: Sequence[Score], arguments: Mapping[str, Any]
    ) -> list[float | None]:
        """Return the rewards, and log metrics and the reasons of the scores.

        The metrics are the number of samples per status, the share of zeros, and the mean of each part; TRL does not
        log these itself.
        """
        if log_metric := arguments.get("log_metric"):
            for status in STATUSES:
                log_metric(f"rewards/{self.__name__}/{status}", float(sum(score.status == status for score in scores)))
            if summary := RewardSummary.from_batch(requests, scores):
                log_metric(f"rewards/{self.__name__}/zeros", summary.zeros / summary.size)
                for part, mean in summary.parts.items():
                    log_metric(f"rewards/{self.__name__}/part/{part}", mean)
        if log_extra := arguments.get("log_extra"):
            log_extra(f"{self.__name__}_reason", [score.reason for score in scores])
        return [score.value for score in scores]


class AsyncRewardFunc(RewardFunc):
    """An async reward function."""

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **arguments: Any
    ) -> list[float | None]:
        """Return a reward or None for each completion; `arguments` has the columns and TRL's other arguments.

        Raises:
            ConfigError: a column is missing, or a route is unknown. This ends the training.
            ScoringError: a sample has no score and `on_error` is "raise".
            FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
        """
        requests = self._requests(prompts, completions, arguments)
        scores = await api.ascore(requests, on_error=self._on_error, timeout=self._timeout)
        return self._rewards(requests, scores, arguments)

    # TRL below 1.14 awaits a function only if `inspect.iscoroutinefunction` accepts it. `inspect` ignores `__call__`,
    # but treats an object with these attributes as a function.
    __code__, __defaults__, __kwdefaults__ = __call__.__code__, None, None


class BlockingRewardFunc(RewardFunc):
    """A synchronous reward function."""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **arguments: Any) -> list[float | None]:
        """Return a reward or None for each completion, like `AsyncRewardFunc`."""
        requests = self._requests(prompts, completions, arguments)
        scores = api.score(requests, on_error=self._on_error, timeout=self._timeout)
        return self._rewards(requests, scores, arguments)
