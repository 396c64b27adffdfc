"""What data sets say of a sample, as more than one trainer hands it over.

`Columns` makes samples of what TRL and ms-swift hand to a reward function, a list for each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.fields import is_missing
from rewardstack.core.messages import last_text
from rewardstack.errors import RequestError
from rewardstack.score import NOTHING, Request
from rewardstack.settings import Settings

SOURCE, EXTRA = "data_source", "extra_info"
"""Columns that data sets of verl have, and that are read here, too."""
TASKS = ("problem", "prompt", "question")
"""Fields of `extra_info` that say what the policy was asked."""


def source_of(*named: str | None) -> str:
    """The route of a sample: the first that is named, else that of `REWARD_TYPE`.

    Raises:
        SettingsError: none is named, and a variable is malformed.
    """
    return next(filter(None, named), None) or Settings.from_env().reward_type


def first_of(values: Iterable[Any]) -> Any:
    """The first that is neither null nor NaN, or None."""
    return next((value for value in values if not is_missing(value)), None)


def options_of(extra: Any, configured: Mapping[str, Any] = NOTHING) -> Any:
    """The `extra_info` of a sample.

    Args:
        extra: the row's own, or None. A field that is null or NaN counts as absent: parquet gives each row the fields
            of all. What is no mapping is given back as it is, for the sample's score to say.
        configured: what holds where the row does not say it.
    """
    own = NOTHING if is_missing(extra) else extra
    if not isinstance(own, Mapping):
        return own
    return {**configured, **{name: value for name, value in own.items() if not is_missing(value)}}


def with_task(extra: Any, task: Any) -> Any:
    """An `extra_info` that says what the policy was asked: by a field of its own, else `task` as `prompt`.

    A trainer may have put its prompt into a chat template; what the row says itself is as the judge is to see it.
    """
    if not isinstance(extra, Mapping) or any(extra.get(name) for name in TASKS):
        return extra
    return {**extra, "prompt": task}


def names_of(given: Iterable[str], argument: str) -> tuple[str, ...]:
    """Several names.

    Raises:
        RequestError: it is one text, whose letters would be the names.
    """
    if isinstance(given, str):
        raise RequestError(f"{argument}: expected a list of names, got {given!r}; put it into a list", argument)
    return tuple(given)


def column_of(values: Sequence[Any] | None, count: int, name: str) -> Sequence[Any]:
    """A value for each of `count` samples; None for each where there is no such column.

    Raises:
        RequestError: it has another length.
    """
    if values is None:
        return [None] * count
    if len(values) != count:
        raise RequestError(f"{name}: {len(values)} values for {count} samples", name)
    return values


@dataclass(frozen=True)
class Columns:
    """Which columns a reward reads, and what is the same in each row.

    Args:
        data_source: names the route; None: the column `data_source` does, row by row.
        reference: the column that holds references; None where the route needs none.
        fields: columns that become fields of `extra_info`.
        extra_info: the same for every row.
        remedy: what to do where a column is not there, beside naming another.
    """

    data_source: str | None
    reference: str | None
    fields: Sequence[str]
    extra_info: Mapping[str, Any]
    remedy: str

    def requests(
        self, prompts: Sequence[Any], completions: Sequence[Any], given: Mapping[str, Sequence[Any]]
    ) -> list[Request]:
        """A request for each row.

        A row's `extra_info` is, what comes later winning: the user's last text as `question`, the `extra_info` of all
        rows, that of the column `extra_info`, whose null fields count as absent, and the `fields`.

        Args:
            prompts: each a text, or chat messages.
            completions: each a text, or chat messages.
            given: the columns, by name.

        Raises:
            RequestError: a column is not there, or has another length.
        """
        count = len(completions)
        sources = [self.data_source] * count if self.data_source else self._column(given, SOURCE, count, SOURCE)
        truths = self._column(given, self.reference, count, "reference") if self.reference else [None] * count
        extras = column_of(given.get(EXTRA), count, EXTRA)
        fields = {name: self._column(given, name, count, "columns") for name in self.fields}
        rows = zip(sources, completions, truths, column_of(prompts, count, "prompts"), extras, strict=True)
        return [
            Request(source, completion, truth, self._extra(prompt, extra, {name: fields[name][at] for name in fields}))
            for at, (source, completion, truth, prompt, extra) in enumerate(rows)
        ]

    def _extra(self, prompt: Any, extra: Any, fields: Mapping[str, Any]) -> Any:
        question = prompt if isinstance(prompt, str) else last_text(prompt, "user")
        options = options_of(extra, {"question": question, **self.extra_info})
        return options_of(fields, options) if isinstance(options, Mapping) else options

    def _column(self, given: Mapping[str, Sequence[Any]], name: str, count: int, argument: str) -> Sequence[Any]:
        if given.get(name) is not None:
            return column_of(given[name], count, name)
        remedy = "give the data set one, or name a route" if argument == SOURCE else f"name another, or {self.remedy}"
        raise RequestError(f"{argument}: there is no column {name!r}; {remedy}", argument)
