"""Score labeled rows as `rewardstack score` does, with options and injections."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from importlib.resources import files
from typing import Any

from rewardstack.core.messages import response_text
from rewardstack.errors import RequestError
from rewardstack.score import Score
from rewardstack_cli.data.rows import Row, added_fields
from rewardstack_cli.interrupts import Interrupts
from rewardstack_cli.options import Scoring
from rewardstack_cli.progress import Tally, progress_bar

SECRET = "api_key"
"""The option whose value reports mask."""
HIDDEN = "***"
"""The mask."""


class Interrupted(Exception):
    """Scoring was interrupted by a signal.

    Args:
        signal: number of the signal.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


def read_options(texts: Sequence[str], argument: str) -> dict[str, Any]:
    """Parse options of the form `name=value`; a value that is not JSON is text.

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
        options[name.strip()] = _value(value)
    return options


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def shown(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a report, with the API key masked."""
    return {name: HIDDEN if name == SECRET else value for name, value in options.items()}


def with_options(row: Row, options: Mapping[str, Any]) -> Row:
    """Return the row with these options in its `extra_info`, where they replace existing options.

    Raises:
        RequestError: the row's `extra_info` is not an object.
    """
    extra = row.fields.get("extra_info")
    if not isinstance(extra, Mapping | None):
        raise RequestError(f"{row.place}: extra_info: expected an object, got {type(extra).__name__}", "extra_info")
    return row._replace(fields={**row.fields, "extra_info": {**(extra or {}), **options}}) if options else row


def injections() -> dict[str, str]:
    """Return the suite of prompt injections by name: texts that could make a judge score a wrong response right."""
    text = files("rewardstack_cli.evaluation").joinpath("injections.json").read_text(encoding="utf-8")
    return {case["name"]: case["candidate"] for case in json.loads(text)}


def with_injection(row: Row, injection: str) -> Row:
    """Return the row with an injection appended to its response."""
    field = "solution_str" if row.fields.get("solution_str") is not None else "response"
    return row._replace(fields={**row.fields, field: f"{response_text(row.fields[field])}\n\n{injection}"})


async def scores_of(rows: Iterable[Row], count: int, options: Scoring) -> list[Score]:
    """Score rows and return the scores in order.

    Args:
        rows: rows to score; read only as fast as they can be sent.
        count: number of rows, for the progress bar.
        options: how to score the rows.

    Raises:
        Interrupted: a signal was received.
        RewardstackError: a row, an option or a setting is malformed, or too many consecutive rows failed.
    """
    scores: list[Score] = []
    tally = Tally()
    with progress_bar() as bar, Interrupts() as interrupts:
        task = bar.add_task("", total=count, before=0, tally=tally)
        async with aclosing(options.pieces(iter(rows), 0, lambda: bool(interrupts.received))) as pieces:
            async for piece in pieces:
                if piece.error is not None:
                    raise piece.error
                for score in piece.scores:
                    tally.add(**added_fields(score))
                scores += piece.scores
                bar.update(task, completed=len(scores))
    if len(scores) < count:
        raise Interrupted(interrupts.received)
    return scores
