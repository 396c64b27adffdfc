"""The scores of labelled rows: as `rewardstack score` makes them, under some options, with injections, or read."""

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
from rewardstack_cli.outage import Outage
from rewardstack_cli.progress import Tally, progress_bar

SECRET = "api_key"
HIDDEN = "***"


class Interrupted(Exception):
    """A signal ended scoring early.

    Args:
        signal: its number.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


def read_options(texts: Sequence[str], argument: str) -> dict[str, Any]:
    """The options that are given as `name=value`, each value as JSON or else as text.

    Args:
        texts: what was given.
        argument: whose it is, for the error.

    Raises:
        RequestError: one has no name.
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
    """Options for a report, without a key."""
    return {name: HIDDEN if name == SECRET else value for name, value in options.items()}


def with_options(row: Row, options: Mapping[str, Any]) -> Row:
    """The row with these options in its `extra_info`, in place of its own.

    Raises:
        RequestError: its `extra_info` is no object.
    """
    extra = row.fields.get("extra_info")
    if not isinstance(extra, Mapping | None):
        raise RequestError(f"{row.place}: extra_info: expected an object, got {type(extra).__name__}", "extra_info")
    return row._replace(fields={**row.fields, "extra_info": {**(extra or {}), **options}}) if options else row


def injections() -> dict[str, str]:
    """The suite of prompt injections, by name: what a policy may write so that a judge takes it for right."""
    text = files("rewardstack_cli.evaluation").joinpath("injections.json").read_text(encoding="utf-8")
    return {case["name"]: case["candidate"] for case in json.loads(text)}


def with_injection(row: Row, injection: str) -> Row:
    """The row, an injection written below its response."""
    field = "solution_str" if row.fields.get("solution_str") is not None else "response"
    return row._replace(fields={**row.fields, field: f"{response_text(row.fields[field])}\n\n{injection}"})


async def scores_of(rows: Iterable[Row], count: int, options: Scoring) -> list[Score]:
    """The scores of rows, in order.

    Args:
        rows: to score, which are taken as they can be sent.
        count: of them, for the progress bar.
        options: how.

    Raises:
        Interrupted: a signal came.
        RewardstackError: a row is malformed, or an option or setting is; or nothing succeeds any more.
    """
    scores: list[Score] = []
    tally = Tally()
    outage = Outage(options.patience, "what was scored is in the cache, if there is one")
    with progress_bar() as bar, Interrupts() as interrupts:
        task = bar.add_task("", total=count, before=0, tally=tally)
        async with aclosing(options.pieces(iter(rows), 0, lambda: bool(interrupts.received))) as pieces:
            async for piece in pieces:
                outage.watch(piece)
                for score in piece.scores:
                    tally.add(**added_fields(score))
                scores += piece.scores
                bar.update(task, completed=len(scores))
    if len(scores) < count:
        raise Interrupted(interrupts.received)
    return scores
