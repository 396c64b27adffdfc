"""Helpers of the trainers' modules: convert rows of data sets into requests, and scores into rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.fields import is_missing
from rewardstack.core.imports import import_lock
from rewardstack.core.messages import is_conversation, last_text
from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import NO_OPTIONS, NO_REFERENCE, Request, Score
from rewardstack.settings import Settings

SOURCE, EXTRA = "data_source", "extra_info"
"""Columns of verl's data sets, which the modules for other trainers read as well."""
TOKENS = "completion_tokens"
"""The field of `extra_info` with the number of tokens in the completion, as counted by the trainer."""
REMEDIES = {
    SOURCE: "name a route as the first argument, or give the data set such a column",
    "reference": "name the column with the references, or give reference=None if the route needs none",
    "columns": "correct the name, or leave it out of columns=",
}
"""What to do about a missing column, by the argument that names the column."""
TASKS = ("problem", "prompt", "question")
"""Fields of `extra_info` that may have the task, i.e. what the policy was asked."""


def source_of(*names: str | None) -> str:
    """Return the route (how to score a sample): the first name that is not empty, else `REWARD_TYPE`.

    Raises:
        SettingsError: all names are empty, and an environment variable is malformed.
    """
    return next(filter(None, names), None) or Settings.from_env().reward_type


def first_of(values: Iterable[Any]) -> Any:
    """Return the first value that is neither null nor NaN; None if there is none."""
    return next((value for value in values if not is_missing(value)), None)


def options_of(extra: Any, defaults: Mapping[str, Any] = NO_OPTIONS) -> Any:
    """Return the `extra_info` of a sample.

    Args:
        extra: the row's `extra_info`, or None. Null and NaN fields count as absent, because parquet gives each row the
            fields of all rows. A value that is not a mapping is returned as it is; scoring the sample reports it.
        defaults: fields to add if `extra` does not have them.
    """
    own = NO_OPTIONS if is_missing(extra) else extra
    if not isinstance(own, Mapping):
        return own
    return {**defaults, **{name: value for name, value in own.items() if not is_missing(value)}}


def with_task(extra: Any, task: Any) -> Any:
    """Return `extra` (an `extra_info`) with `task` as the field `prompt`, unless `extra` already has a task.

    The row's own field takes precedence, because the trainer may have applied its chat template to the prompt.
    """
    if not isinstance(extra, Mapping) or any(extra.get(name) for name in TASKS):
        return extra
    return {**extra, "prompt": task}


def names_of(names: Iterable[str], argument: str) -> tuple[str, ...]:
    """Return the names as a tuple.

    Raises:
        RequestError: `names` is a string; the error names `argument`.
    """
    if isinstance(names, str):
        raise RequestError(f"{argument}: expected a list of names, got {names!r}; put it into a list", argument)
    return tuple(names)


def column_of(values: Sequence[Any] | None, count: int, name: str) -> Sequence[Any]:
    """Return a column's values for `count` samples; None for each sample if there is no such column.

    Raises:
        RequestError: the column does not have `count` values.
    """
    if values is None:
        return [None] * count
    if len(values) != count:
        raise RequestError(f"{name}: {len(values)} values for {count} samples", name)
    return values


def rewards_of(scores: Sequence[Score], remedy: str, samples: Sequence[str] = ("",)) -> list[float]:
    """Return the rewards of samples, for trainers that accept only numbers.

    Args:
        scores: the scores of the samples.
        remedy: where the trainer takes the reference from; added to the error if a reference is missing.
        samples: for each sample, the start of the error message.

    Raises:
        ScoringError: a sample has no reward.
    """
    for score, sample in zip(scores, samples, strict=True):
        if score.value is None:
            end = f"; {remedy}" if score.reason == NO_REFERENCE else ""
            raise ScoringError(f"{sample}{score.status}: {score.reason}{end}", scores)
    return [score.value for score in scores if score.value is not None]


@dataclass(frozen=True)
class Columns:
    """The columns that a reward function reads; TRL and ms-swift pass a list per column.

    Args:
        data_source: the route; None to read it from the column `data_source` of each row.
        reference: the column with the references; None if the route needs none.
        fields: names of columns that become fields of `extra_info`.
        extra_info: fields of `extra_info` for every row.
        remedy: what to do if the trainer does not pass a column of the data set; added to the error.
    """

    data_source: str | None
    reference: str | None
    fields: Sequence[str]
    extra_info: Mapping[str, Any]
    remedy: str = ""

    def requests(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        given: Mapping[str, Sequence[Any]],
        token_ids: Sequence[Any] | None = None,
    ) -> list[Request]:
        """Return a request for each row.

        A request's `extra_info` combines the following; later items take precedence: the user's last message as
        `question`, the fields for every row, the column `extra_info` without its null fields, and the columns `fields`.

        Args:
            prompts: strings or chat messages.
            completions: strings or chat messages.
            given: the columns by name.
            token_ids: the token IDs of each completion, whose number becomes `completion_tokens`; None if unknown.

        Raises:
            RequestError: a column is missing, or does not have a value for each completion.
        """
        count = len(completions)
        sources = [self.data_source] * count if self.data_source else self._column(given, SOURCE, count, SOURCE)
        truths = self._column(given, self.reference, count, "reference") if self.reference else [None] * count
        extras = column_of(given.get(EXTRA), count, EXTRA)
        fields = {name: self._column(given, name, count, "columns") for name in self.fields}
        if token_ids is not None:
            fields[TOKENS] = [None if ids is None else len(ids) for ids in column_of(token_ids, count, "token ids")]
        rows = zip(sources, completions, truths, column_of(prompts, count, "prompts"), extras, strict=True)
        return [
            Request(source, completion, truth, self._extra(prompt, extra, {name: fields[name][at] for name in fields}))
            for at, (source, completion, truth, prompt, extra) in enumerate(rows)
        ]

    def _extra(self, prompt: Any, extra: Any, fields: Mapping[str, Any]) -> Any:
        question = prompt if isinstance(prompt, str) else last_text(prompt, "user")
        has_task = isinstance(extra, Mapping) and any(not is_missing(extra.get(name)) for name in TASKS)
        conversation = {"messages": prompt} if _has_more(prompt) and not has_task else {}
        options = options_of(extra, {"question": question, **conversation, **self.extra_info})
        return options_of(fields, options) if isinstance(options, Mapping) else options

    def _column(self, given: Mapping[str, Sequence[Any]], name: str, count: int, argument: str) -> Sequence[Any]:
        if given.get(name) is not None:
            return column_of(given[name], count, name)
        with import_lock:
            from rewardstack.core.misspellings import did_you_mean
        end = f"; {self.remedy}" if self.remedy else ""
        message = f"{argument}: there is no column {name!r}; {did_you_mean(name, given)}{REMEDIES[argument]}{end}"
        raise RequestError(message, argument)


def _has_more(prompt: Any) -> bool:
    """Return whether a prompt has more than the text of a single user message, such as a system message or an image."""
    if not is_conversation(prompt) or isinstance(prompt, Mapping):
        return False
    return len(prompt) > 1 or not isinstance(prompt[0].get("content"), str)
