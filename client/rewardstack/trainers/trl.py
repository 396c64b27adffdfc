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
from rewardstack.core.messages import last_text
from rewardstack.errors import RequestError
from rewardstack.score import STATUSES, OnError, Request, Score

SOURCE, EXTRA = "data_source", "extra_info"
"""Columns that data sets of verl have, and that are read here, too."""
REMEDY = "and GRPOConfig(remove_unused_columns=False) keeps those that there are"


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

    A completion's `extra_info` is, what comes later winning: the prompt's text as `question`, the `extra_info` given
    here, that of the data set's column of this name, and the `columns`.

    Args:
        data_source: names the route; None: the data set's column `data_source` does, row by row.
        reference: the column that holds references; None where the route needs none.
        columns: further ones that the route reads, as fields of `extra_info`.
        extra_info: the same for every completion, such as `{"target_length": 40}`.
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
    return kind(data_source, reference, (*columns,), dict(extra_info or {}), on_error, timeout, name)


class RewardFunc:
    """What both kinds of function share; `reward_func` has the arguments. It can be pickled."""

    def __init__(
        self,
        data_source: str | None,
        reference: str | None,
        columns: Sequence[str],
        extra_info: Mapping[str, Any],
        on_error: OnError,
        timeout: float | None,
        name: str | None,
    ) -> None:
        self._data_source, self._reference, self._columns = data_source, reference, columns
        self._extra_info, self._options = extra_info, {"on_error": on_error, "timeout": timeout}
        self.__name__ = name or data_source or "rewardstack"

    def _requests(self, prompts: Sequence[Any], completions: Sequence[Any], given: Mapping[str, Any]) -> list[Request]:
        count = len(completions)
        sources = [self._data_source] * count if self._data_source else _column(given, SOURCE, SOURCE)
        truths = _column(given, self._reference, "reference") if self._reference else [None] * count
        extras = given.get(EXTRA) or [None] * count
        added = {name: _column(given, name, "columns") for name in self._columns}
        return [
            Request(source, completion, truth, self._extra(prompt, extra, {key: added[key][row] for key in added}))
            for row, (source, completion, truth, prompt, extra) in enumerate(
                zip(sources, completions, truths, prompts, extras, strict=True)
            )
        ]

    def _extra(self, prompt: Any, extra: Mapping[str, Any] | None, added: Mapping[str, Any]) -> dict[str, Any]:
        question = prompt if isinstance(prompt, str) else last_text(prompt, "user")
        known = {key: value for key, value in (extra or {}).items() if value is not None}
        return {"question": question, **self._extra_info, **known, **added}

    def _rewards(self, scores: Sequence[Score], given: Mapping[str, Any]) -> list[float | None]:
        """The values; how many have each status goes to TRL's metrics, why some have none to its table of completions."""
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
        scores = await api.ascore(self._requests(prompts, completions, given), **self._options)
        return self._rewards(scores, given)


class BlockingRewardFunc(RewardFunc):
    """To be called."""

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        """A reward for each completion, or None; `given` is what else TRL hands over."""
        scores = api.score(self._requests(prompts, completions, given), **self._options)
        return self._rewards(scores, given)


def _column(given: Mapping[str, Any], name: str, argument: str) -> Sequence[Any]:
    if name in given:
        values: Sequence[Any] = given[name]
        return values
    raise RequestError(f"{argument}: the data set has no column {name!r}; name one that it has, {REMEDY}", argument)
