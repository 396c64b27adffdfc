"""The columns of a data set as samples: what TRL and ms-swift hand to a reward function, a list for each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.messages import last_text
from rewardstack.errors import RequestError
from rewardstack.score import Request

SOURCE, EXTRA = "data_source", "extra_info"
"""Columns that data sets of verl have, and that are read here, too."""


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
        known = {name: value for name, value in (extra or {}).items() if value is not None}
        return {"question": question, **self.extra_info, **known, **fields}

    def _column(self, given: Mapping[str, Sequence[Any]], name: str, argument: str) -> Sequence[Any]:
        if name in given:
            return given[name]
        raise RequestError(
            f"{argument}: there is no column {name!r}; name one of the data set, or {self.remedy}", argument
        )
