"""Read labeled rows: samples with a trusted label that says whether the response is right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from rewardstack.cause import Cause
from rewardstack.errors import RequestError
from rewardstack.score import STATUSES, Score
from rewardstack_cli.data.rows import Row

KINDS = "0 or 1, true or false, or a number within [0, 1]"
"""The valid labels, for help and errors."""

MAX_GROUPS = 1000
"""Maximum number of groups."""


class LabeledRow(NamedTuple):
    """A row with its label.

    Args:
        row: row of the file.
        right: whether the row's response is right, according to the label.
        group: the row's group in the report, by default its `data_source`.
    """

    row: Row
    right: bool
    group: str


def read(
    rows: Iterable[Row], field: str, by: str, threshold: float, data_source: str | None = None
) -> Iterator[LabeledRow]:
    """Yield the rows with their labels.

    Args:
        rows: rows of a file.
        field: field with the label.
        by: field to group by, in the row or in its `extra_info`.
        threshold: minimum label; a response with at least this label is right. Label 0 is always wrong, 1 always right.
        data_source: the `data_source` of rows that have none.

    Raises:
        RequestError: there are no rows or too many groups, or the label or group of a row is missing or invalid. In the
            last case, the message names file, row and field.
    """
    groups = set()
    for row in rows:
        labeled = LabeledRow(row, _is_right(row, field, threshold), _parse_group(row, by, data_source))
        groups.add(labeled.group)
        if len(groups) > MAX_GROUPS:
            raise RequestError(f"--by: {by} has more than {MAX_GROUPS:,} values; group by another field", "--by")
        yield labeled
    if not groups:
        raise RequestError("IN: no rows to evaluate", "IN")


def parse_label(row: Row, field: str) -> float:
    """Return the label of a row, within [0, 1].

    Raises:
        RequestError: the label is missing or invalid.
    """
    label = row.fields.get(field)
    if label is None:
        raise RequestError(
            f"{row.location}: {field} is missing: expected {KINDS}; use --label FIELD for another field", field
        )
    if not isinstance(label, int | float) or not math.isfinite(label) or not 0 <= label <= 1:
        raise RequestError(f"{row.location}: {field}: expected {KINDS}, got {_quote(label)}", field)
    return float(label)


def _is_right(row: Row, field: str, threshold: float) -> bool:
    label = parse_label(row, field)
    return label == 1 or (label > 0 and label >= threshold)


def parse_score(row: Row) -> Score:
    """Return the score in a row of an output file of `rewardstack score`.

    Raises:
        RequestError: the score is missing or malformed.
    """
    status, value, reason, cause = (row.fields.get(name) for name in ("status", "value", "reason", "cause"))
    if status not in STATUSES:
        raise RequestError(f"{row.location}: status: expected one of {', '.join(STATUSES)}, as `score` writes it; "
                           f"got {_quote(status)}; drop --scored to score the rows", "status")  # fmt: skip
    number = float(value) if _is_number(value) else None
    if number is None and (status in ("ok", "fallback") or value is not None):
        raise RequestError(f"{row.location}: value: expected a number, got {_quote(value)}", "value")
    return Score(number, status, reason if isinstance(reason, str) else "", cause=Cause.read(cause))


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _parse_group(row: Row, by: str, data_source: str | None) -> str:
    group = row.fields.get(by)
    group = data_source if group is None and by == "data_source" else group
    if group is None and isinstance(row.fields.get("extra_info"), Mapping):
        group = row.fields["extra_info"].get(by)
    if not isinstance(group, str | int | float):
        message = f"{row.location}: {by}: expected a string or a number to group by, got {_quote(group)}"
        raise RequestError(message, by)
    return str(group)


def _quote(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
