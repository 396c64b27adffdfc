"""What data sets say of a sample, as more than one trainer hands it over.

`Columns` makes samples of what TRL and ms-swift hand to a reward function, a list for each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    """The first that is not null, or None."""
    return next((value for value in values if value is not None), None)


def options_of(extra: Mapping[str, Any] | None, configured: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """The `extra_info` of a sample.

    Args:
        extra: the row's own, or None. A null field counts as absent: parquet gives each row the fields of all.
        configured: what holds where the row does not say it.
    """
    return {**configured, **{name: value for name, value in (extra or NOTHING).items() if value is not None}}


def with_task(extra: Mapping[str, Any], task: Any) -> dict[str, Any]:
    """An `extra_info` that says what the policy was asked: by a field of its own, else `task` as `prompt`.

    A trainer may have put its prompt into a chat template; what the row says itself is as the judge is to see it.
    """
    return {**extra} if any(extra.get(name) for name in TASKS) else {**extra, "prompt": task}


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
            RequestError: a column is not there.
        """
        count = len(completions)
        sources = [self.data_source] * count if self.data_source else self._column(given, SOURCE, SOURCE)
        truths = self._column(given, self.reference, "reference") if self.reference else [None] * count
        extras = given.get(EXTRA) or [None] * count
        fields = {name: self._column(given, name, "columns") for name in self.fields}
        rows = zip(sources, completions, truths, prompts, extras, strict=True)
        return [
            Request(source, completion, truth, self._extra(prompt, extra, {name: fields[name][at] for name in fields}))
            for at, (source, completion, truth, prompt, extra) in enumerate(rows)
        ]

    def _extra(self, prompt: Any, extra: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        question = prompt if isinstance(prompt, str) else last_text(prompt, "user")
        return {**options_of(extra, {"question": question, **self.extra_info}), **fields}

    def _column(self, given: Mapping[str, Sequence[Any]], name: str, argument: str) -> Sequence[Any]:
        if name in given:
            return given[name]
        raise RequestError(
            f"{argument}: there is no column {name!r}; name one of the data set, or {self.remedy}", argument
        )
