"""Score labeled rows as `rewardstack score` does, but with the options and prompt injections of a setting."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from importlib.resources import files
from typing import Any, NamedTuple

from rewardstack.core.messages import response_text
from rewardstack.errors import RequestError
from rewardstack.score import Score
from rewardstack_cli.data.rows import Row, score_fields
from rewardstack_cli.evaluation.labels import LabeledRow
from rewardstack_cli.evaluation.report import Report, Result
from rewardstack_cli.interrupts import Interrupts
from rewardstack_cli.options import Scoring
from rewardstack_cli.progress import Tally, progress_bar

SECRET_OPTION = "api_key"
"""The option whose value is masked in reports."""
MASK = "***"
"""Replaces the value of `SECRET_OPTION` in reports."""


class Interrupted(Exception):
    """Scoring was interrupted by a signal.

    Args:
        signal: number of the signal.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


def read_options(texts: Sequence[str], argument: str) -> dict[str, Any]:
    """Parse options of the form `name=value`; a value that is not JSON is a string.

    Args:
        texts: the options.
        argument: name of the command-line argument, for the error message.

    Raises:
        RequestError: an option has no name.
    """
    options = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise RequestError(f"{argument}: expected name=value, such as temperature=0; got {text!r}", argument)
        options[name.strip()] = _parse_value(value)
    return options


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def mask_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a report, with the API key masked."""
    return {name: MASK if name == SECRET_OPTION else value for name, value in options.items()}


def with_options(row: Row, options: Mapping[str, Any]) -> Row:
    """Return the row with these options in its `extra_info`, where they replace options of the same name.

    Raises:
        RequestError: the row's `extra_info` is not an object.
    """
    extra = row.fields.get("extra_info")
    if not isinstance(extra, Mapping | None):
        raise RequestError(f"{row.location}: extra_info: expected an object, got {type(extra).__name__}", "extra_info")
    return row._replace(fields={**row.fields, "extra_info": {**(extra or {}), **options}}) if options else row


def load_injections() -> dict[str, str]:
    """Return the prompt injections by name: texts that could make a judge score a wrong response as right."""
    text = files("rewardstack_cli.evaluation").joinpath("injections.json").read_text(encoding="utf-8")
    return {case["name"]: case["candidate"] for case in json.loads(text)}


def with_injection(row: Row, injection: str) -> Row:
    """Return the row with an injection appended to its response."""
    field = "solution_str" if row.fields.get("solution_str") is not None else "response"
    return row._replace(fields={**row.fields, field: f"{response_text(row.fields[field])}\n\n{injection}"})


class Setting(NamedTuple):
    """A way to score the rows of a file.

    Args:
        overrides: options for every row; they replace options of the same name in the row.
        suite: the prompt injections by name; each is appended to every response that is labeled wrong.
        scoring: scores the rows. Each setting has its own `Scoring`, so that a route that keeps failing under one
            setting is stopped for that setting only.
    """

    overrides: Mapping[str, Any]
    suite: Mapping[str, str]
    scoring: Scoring

    def rows(self, labeled: Iterable[LabeledRow]) -> Iterator[Row]:
        """Yield each row; after a row that is labeled wrong, also yield this row with each injection."""
        for one in labeled:
            row = with_options(one.row, self.overrides)
            yield row
            for text in self.suite.values() if not one.right else ():
                yield with_injection(row, text)

    def size(self, rows: int, right: int) -> int:
        """Return the number of rows to score for a file of `rows` rows, `right` of which are labeled right."""
        return rows + (rows - right) * len(self.suite)


Read = Callable[[], Iterator[LabeledRow]]
"""Reads the labeled rows of a file from its start."""


async def add_scores(report: Report, read: Read, settings: Sequence[Setting], total: int) -> None:
    """Score the rows of a file under each setting and add them to the report, in order.

    Args:
        report: the report on these settings.
        read: reads the file; called once for each setting, and once to match the rows with their scores.
        settings: how the rows are scored.
        total: number of rows to score, summed over all settings; shown in the progress bar.

    Raises:
        Interrupted: a signal arrived before all rows were scored.
        RewardstackError: a row, an option or a setting is malformed.
    """
    tally = Tally()
    with progress_bar() as bar, Interrupts() as interrupts:
        task = bar.add_task("", total=total, before=0, tally=tally)
        async with AsyncExitStack() as stack:
            streams = [_stream_scores(one, read, interrupts) for one in settings]
            for stream in streams:
                await stack.enter_async_context(aclosing(stream))
            for row in read():
                results = []
                for setting, stream in zip(settings, streams, strict=True):
                    count = setting.size(1, int(row.right))
                    scores = [one async for one in _take_scores(stream, count)]
                    if len(scores) < count:
                        raise Interrupted(interrupts.received)
                    for score in scores:
                        tally.add(**score_fields(score))
                    results.append(Result(scores[0], scores[1:]))
                report.add(row, results)
                bar.update(task, completed=tally.rows)


async def _stream_scores(setting: Setting, read: Read, interrupts: Interrupts) -> AsyncGenerator[Score, None]:
    """Yield the score of each row of `setting.rows`, in order, until a signal is received."""
    rows = setting.rows(read())
    async with aclosing(setting.scoring.pieces(rows, 0, lambda: bool(interrupts.received))) as pieces:
        async for piece in pieces:
            for score in piece.scores:
                yield score
            if piece.error is not None:
                raise piece.error


async def _take_scores(stream: AsyncGenerator[Score, None], count: int) -> AsyncGenerator[Score, None]:
    """Yield at most `count` scores."""
    for _ in range(count):
        try:
            yield await anext(stream)
        except StopAsyncIteration:
            return
