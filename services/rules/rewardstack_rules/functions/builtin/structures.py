"""`list_match`, `grid_match` and `json_match`: compare a list, a table or a JSON value with the reference.

Values are read as JSON, else as Python literals; nothing is evaluated. 1 and 1.0 are equal, 1 and true are not.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from rewardstack.cause import Cause
from rewardstack.core.fields import Fields
from rewardstack_rules.functions.builtin.answer_places import MAX_ANSWER, PLACES, find_answer
from rewardstack_rules.functions.outcome import Outcome, Unscored

MAX_DEPTH = 50
"""Maximum depth of nested lists and objects."""
SCORES = ("all", "share")
EXTRA_ROWS = ("wrong", "ignore")
_NO_VALUE = object()
"""What `_read` returns for a text that is no value."""
_MARK = re.compile(r"[\[\]{}()\"'\n]|\\.", re.DOTALL)
"""Matches a bracket, a quote, the end of a line, or an escaped character."""
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_OPERATORS = re.compile(r"(?:[-+~*]\s*){3}")
"""Matches a chain of operators, which no literal has, and for which Python's parser needs much memory."""
_SEPARATOR = re.compile(r"\s*(?:[,;\n]|->|\u2192|\u3001|\uff0c)\s*")
_BULLET = re.compile(r"(?:\d{1,3}[.)]|[-*\u2022])\s+")
"""Matches the mark of a list item at the beginning of a line."""
_MISSING = object()
"""An item or a cell that one of the two values does not have."""


def list_match(
    response: str, reference: str, answer_in: str | None = None, score: str | None = None, ordered: bool | None = None
) -> Outcome:
    """Compare a list of texts or numbers with the reference, item by item; case and surrounding spaces are ignored.

    Args:
        response: the policy's text. The answer is a list in JSON or Python, or items between commas or on lines.
        reference: the right list, as JSON or as a Python literal.
        answer_in: where the answer is (`qa_match`); the last `<answer>` by default.
        score: `all` (default: 1 if all items are equal) or `share` (the share of items at their places).
        ordered: whether the order counts; true by default.

    Raises:
        Unscored: the reference is not a list of texts and numbers.
        RequestError: an option is malformed.
    """
    options = Fields({"answer_in": answer_in, "score": score, "ordered": ordered})
    place, how = options.choice("answer_in", [*PLACES]), options.choice("score", SCORES)
    expected = _items(_read(reference))
    if not expected:
        raise Unscored(
            'the reference is not a list of texts and numbers, such as ["owl", "hawk"]', cause=Cause.BAD_REFERENCE
        )
    answer, fault = find_answer(response, place)
    if fault:
        return _unreadable(fault)
    found = _items(_read(answer)) or _items(_first_value(answer)) or _split(answer)
    if not options.flag("ordered", True):
        expected, found = sorted(expected), sorted(found)
    pairs = [*zip_longest(found, expected, fillvalue=_MISSING)]
    return _outcome(sum(mine == right for mine, right in pairs), len(pairs), how)


def grid_match(
    response: str,
    reference: str,
    answer_in: str | None = None,
    score: str | None = None,
    extra_rows: str | None = None,
) -> Outcome:
    """Compare a table with the reference, cell by cell; case and spaces around texts are ignored.

    Args:
        response: the policy's text. The answer is a list of rows, or an object with `rows` and, if the reference has
            one, `header`; with the same columns in another order, its columns are reordered.
        reference: the right table in the same form, as JSON or as a Python literal.
        answer_in: where the answer is (`qa_match`); the last `<answer>` by default.
        score: `all` (default: 1 if all cells are equal) or `share` (the share of equal cells).
        extra_rows: how cells count that the reference does not have: `wrong` (default) or `ignore`.

    Raises:
        Unscored: the reference is not a table.
        RequestError: an option is malformed.
    """
    options = Fields({"answer_in": answer_in, "score": score, "extra_rows": extra_rows})
    place, how = options.choice("answer_in", [*PLACES]), options.choice("score", SCORES)
    extra = options.choice("extra_rows", EXTRA_ROWS)
    right = _read(reference)
    expected = _rows(right, None)
    if not expected or not any(expected):
        raise Unscored(
            'the reference is not a table, such as [[1, 0]] or {"header": ["House"], "rows": [["1"]]}',
            cause=Cause.BAD_REFERENCE,
        )
    answer, fault = find_answer(response, place)
    if fault:
        return _unreadable(fault)
    header = right.get("header") if isinstance(right, dict) else None
    found = _rows(_read(answer), header) or _rows(_first_value(answer), header)
    if not found:
        return _unreadable("the answer is not a table")
    rows = zip_longest(found, expected, fillvalue=())
    cells = [pair for mine, its in rows for pair in zip_longest(mine, its, fillvalue=_MISSING)]
    if extra == "ignore":
        cells = [pair for pair in cells if pair[1] is not _MISSING]
    return _outcome(sum(_is_equal_cell(*pair) for pair in cells), len(cells), how)


def json_match(
    response: str,
    reference: str,
    answer_in: str | None = None,
    json_fields: Sequence[str] | str | None = None,
    typed: bool | None = None,
) -> Outcome:
    """Return 1 if the JSON value of the answer equals the reference, else 0.

    Args:
        response: the policy's text. If there is no value at `answer_in`, the last JSON object of the text is read.
        reference: the right value as JSON; `"output": 4`, the inside of an object, counts as an object.
        answer_in: where the answer is (`qa_match`); the last `<answer>` by default.
        json_fields: the fields of the two objects to compare; by default the whole values.
        typed: whether the text "4" differs from the number 4, and "true" from true; true by default.

    Raises:
        Unscored: the reference is not JSON, or lacks one of `json_fields`.
        RequestError: an option is malformed.
    """
    options = Fields({"answer_in": answer_in, "typed": typed})
    place, is_typed = options.choice("answer_in", [*PLACES]), options.flag("typed", True)
    names = [json_fields] if isinstance(json_fields, str) else [*(json_fields or ())]
    expected = _read(reference)
    expected = _read(f"{{{reference}}}") if expected is _NO_VALUE else expected
    if expected is _NO_VALUE or (names and not (isinstance(expected, dict) and {*names} <= expected.keys())):
        raise Unscored(
            f"the reference is not JSON{' with the fields ' + ', '.join(names) if names else ''}",
            cause=Cause.BAD_REFERENCE,
        )
    text, missing = find_answer(response, place)
    found = _NO_VALUE if missing else _read(text)
    if missing:
        text, fault = find_answer(response, "all")
        if fault:
            return _unreadable(fault)
    found = _last_object(text) if found is _NO_VALUE else found
    if found is _NO_VALUE:
        return _unreadable("the answer is not JSON")
    if names:
        if not isinstance(found, dict) or not {*names} <= found.keys():
            return _unreadable(f"the answer has no field {', '.join(names)}")
        found, expected = ([value[name] for name in names] for value in (found, expected))
    return _outcome(int(_is_equal(found, expected, is_typed)), 1, "all")


def _outcome(equal: int, total: int, how: str) -> Outcome:
    share = equal / total
    value = share if how == "share" else float(equal == total)
    reason = "" if equal == total else f"wrong answer: {equal} of {total} right" if total > 1 else "wrong answer"
    return Outcome(value, reason, {"format": 1.0, "accuracy": share})


def _unreadable(reason: str) -> Outcome:
    return Outcome(0.0, reason, {"format": 0.0, "accuracy": 0.0})


def _read(text: str) -> Any:
    """Return the value that a text is, as JSON types; `_NO_VALUE` if it is none, or too long or deeply nested."""
    text = text.strip()
    if len(text) > MAX_ANSWER or _depth(text) > MAX_DEPTH:
        return _NO_VALUE
    try:
        return _as_json(_parse(text))
    except (_RepeatedNameError, ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return _NO_VALUE


def _parse(text: str) -> Any:
    """Return a JSON value or a Python literal; raise if the text is neither."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        if _OPERATORS.search(text):
            raise
        return ast.literal_eval(text)


class _RepeatedNameError(Exception):
    """A JSON object has a name twice, so it does not have one meaning."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedNameError
    return found


def _depth(text: str) -> int:
    """Return the number of brackets that are open at the same place, also in quoted texts."""
    depth = deepest = 0
    for mark in _MARK.finditer(text):
        depth += (mark[0] in _CLOSING) - (mark[0] in _CLOSING.values())
        deepest = max(deepest, depth)
    return deepest


def _as_json(value: Any) -> Any:
    """Return a value in JSON types; raise TypeError for sets, bytes, complex numbers, NaN and infinity."""
    if isinstance(value, (list, tuple)):
        return [_as_json(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _as_json(one) for name, one in value.items()}
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError(f"{type(value).__name__} is not JSON")


def _first_value(text: str) -> Any:
    """Return the first list or object in a text with words around it; `_NO_VALUE` if there is none."""
    return next((value for value in map(_read, _spans(text)) if value is not _NO_VALUE), _NO_VALUE)


def _last_object(text: str) -> Any:
    return next((value for value in map(_read, reversed(_spans(text))) if isinstance(value, dict)), _NO_VALUE)


def _spans(text: str) -> list[str]:
    """Return the outermost passages of a text between a bracket `[` or `{` and its closing bracket."""
    pairs: list[tuple[int, int]] = []
    opened: list[re.Match[str]] = []
    quote = ""
    for mark in _MARK.finditer(text):
        one = mark[0]
        if quote:
            quote = "" if one in (quote, "\n") else quote
        elif one in "[{":
            opened.append(mark)
        elif one in "]}" and opened:
            opening = opened.pop()
            if _CLOSING[opening[0]] == one:
                pairs.append((opening.start(), mark.end()))
        elif one in "\"'" and opened:
            quote = one
    found, end = [], 0
    for start, stop in sorted(pairs):
        if start >= end:
            found.append(text[start:stop])
            end = stop
    return found


def _items(value: Any) -> list[str]:
    """Return a list of texts and numbers as normalized texts; empty if the value is none."""
    if not isinstance(value, list) or any(isinstance(one, (list, dict, type(None))) for one in value):
        return []
    return [_normalized(one) for one in value]


def _split(text: str) -> list[str]:
    """Return the items of a text with separators, such as `owl, hawk` or one item on each line."""
    return [item for one in _SEPARATOR.split(text) if (item := _normalized(_BULLET.sub("", one.strip(), count=1)))]


def _normalized(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.lower().strip(" \t\n\"'`").split())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


def _rows(value: Any, header: Any) -> list[list[Any]]:
    """Return the rows of a table; empty if the value is none, or has other columns than `header`."""
    columns = None
    if isinstance(value, dict):
        value, columns = value.get("rows"), value.get("header")
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        return []
    if header is None or columns is None or columns == header:
        return value
    mine, right = _items(columns), _items(header)
    if sorted(mine) != sorted(right) or any(len(row) != len(mine) for row in value):
        return []
    order = [mine.index(name) for name in right]
    return [[row[at] for at in order] for row in value]


def _is_equal_cell(mine: Any, right: Any) -> bool:
    if mine is _MISSING or right is _MISSING:
        return False
    is_text = isinstance(mine, str) or isinstance(right, str)
    return _normalized(mine) == _normalized(right) if is_text else _is_equal(mine, right, True)


def _is_equal(mine: Any, right: Any, is_typed: bool) -> bool:
    if isinstance(mine, dict) and isinstance(right, dict):
        return mine.keys() == right.keys() and all(_is_equal(mine[name], right[name], is_typed) for name in right)
    if isinstance(mine, list) and isinstance(right, list):
        return len(mine) == len(right) and all(map(lambda one, its: _is_equal(one, its, is_typed), mine, right))
    if not is_typed and isinstance(mine, str) != isinstance(right, str):
        return _normalized(mine) == _normalized(right)
    return isinstance(mine, bool) == isinstance(right, bool) and bool(mine == right)
