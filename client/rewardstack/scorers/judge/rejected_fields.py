"""Read what providers say when they refuse a request: rejected fields, a prompt that is too long, an unfinished reply.

No other module of the judge reads these texts. An error may quote the sample, whose text comes from a policy and can
imitate an error, so the sample's words are first cut out. Only fields of the request are returned. Cases, with the
texts of many providers, are in `tests/cases/providers.json` and `judge_rejections.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardstack.errors import RejectedError
from rewardstack.scorers.judge.dialect import LIMIT_FIELDS, Dialect, Value

STATUSES = (400, 403, 422)
"""HTTP statuses of errors about the fields of a request."""
MAX_TEXT = 16_384
"""Maximum number of characters of an error that are read."""
QUOTED_WORDS = 3
"""Number of successive words that count as a quotation if the sample has them, too."""
_WORDS = json.loads(Path(__file__).with_name("provider_words.json").read_text(encoding="utf-8"))
"""What providers call fields, and parts of regular expressions for what they say."""
_CONSTRAINTS = ("structured_outputs", "guided_regex", "regex")
_SAMPLING = ("temperature", "top_p", "seed", "chat_template_kwargs", "enable_thinking")
"""Fields for which a server may demand a value."""
_ESCAPE = re.compile(r"\\+(?:[nrt]|(.))", re.DOTALL)
_QUOTED_REQUEST = re.compile(r"['\"](?:input|request|body)['\"]: ?(?=[\[{])")
_UNICODE_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_SUGGESTION = re.compile(rf"\b(?:{'|'.join(_WORDS['suggestion'])}).*", re.IGNORECASE | re.DOTALL)
"""Matches the rest of an error from where it names the fields that the server does accept."""
_WORD = re.compile(r"\w+")
_JOINED = re.compile(r"\w+(?:[ -]\w+)*")
MAX_JOINED = 3
"""Maximum number of words, joined by spaces or hyphens, that may be the name of a field: `chat template kwargs`."""
_URL = re.compile(r"https?://\S+")
_VALUE = r"(?P<{}>-?\d{{1,9}}(?:\.\d{{1,9}})?|true|false)"
_DEMAND = re.compile(
    rf"\bonly\b\W{{0,3}}(?:the default\W{{0,3}})?(?:\w{{1,40}} ?= ?)?{_VALUE.format('only')}\W{{0,2}}(?: ?value)?"
    r"(?: ?is| ?are)? ?(?:allowed|supported|accepted|permitted)\b"
    rf"|\bmust be (?:set to |equal to )?['\"`]?{_VALUE.format('must')}\b(?!\.\d| ?(?:or|to|and|-)\b)",
    re.IGNORECASE,
)
"""A demand such as `only 1 is allowed`, `Only the default (1) value is supported` or `must be set to false`."""
_LIMIT = re.compile(rf"(?:{'|'.join(_WORDS['highest'])}) ?(\d{{2,7}})\b", re.IGNORECASE)
"""Matches the highest number of tokens that a server accepts."""
_TOO_LONG = re.compile("|".join(_WORDS["too_long"]), re.IGNORECASE)
_UNFINISHED = re.compile("|".join(_WORDS["unfinished"]), re.IGNORECASE)


def rejected_fields(error: RejectedError, request: Mapping[str, Any], texts: Collection[str] = ()) -> dict[str, Value]:
    """Return the fields of a request that a server rejects; empty if the error has another cause.

    Args:
        error: the server's error.
        request: the request's fields that may be omitted.
        texts: the texts of the sample, which the error may quote.

    Returns:
        The value that the server demands for each rejected field; None for no particular value. Of `temperature` and
        `top_p`, only the latter is returned, because many servers accept one of the two.
    """
    text = _own_words(error, texts)
    if error.status not in STATUSES or _TOO_LONG.search(text) or _UNFINISHED.search(text):
        return {}
    fields = _named(text, 1, request) or _named(text, MAX_JOINED, request)
    if {"temperature", "top_p"} <= {*fields}:
        fields.remove("temperature")
    highest = _LIMIT.search(text)
    if fields and fields[0] in LIMIT_FIELDS and highest and int(highest[1]) < request[fields[0]]:
        return {fields[0]: int(highest[1])}
    demand = _DEMAND.search(text) if len(fields) == 1 and fields[0] in _SAMPLING else None
    word = (demand["only"] or demand["must"]).lower() if demand else ""
    value: Value = word == "true" if word in ("true", "false") else json.loads(word) if word else None
    return {name: None if value == request[name] else value for name in fields}


def names_other_limit(error: RejectedError) -> bool:
    """Return whether a server rejects the name of the field `max_tokens`, and not its value."""
    return re.search(rf"{LIMIT_FIELDS[1]}\W{{1,4}}(?:parameter )?instead", error.text) is not None


def is_too_long(error: RejectedError, texts: Collection[str] = ()) -> bool:
    """Return whether a server refuses a prompt because it is too long; see `rejected_fields` for the arguments."""
    return error.status == 413 or (error.status < 500 and _TOO_LONG.search(_own_words(error, texts)) is not None)


def is_unfinished(error: RejectedError, texts: Collection[str] = ()) -> bool:
    """Return whether a server could not finish its reply, or could not make valid JSON."""
    return error.status in STATUSES and _UNFINISHED.search(_own_words(error, texts)) is not None


def omit_fields(dialect: Dialect, rejected: Mapping[str, Value]) -> Dialect:
    """Return the dialect without these fields, or with the values in `rejected`; see `Dialect.omit`."""
    for field, value in rejected.items():
        dialect = dialect.omit(field, value)
    return dialect


def _named(text: str, most: int, request: Mapping[str, Any]) -> list[str]:
    """Return the fields that a text names by a word, or by up to `most` words that spaces or hyphens join."""
    runs = [_WORD.findall(run.replace("_", "").lower()) for run in _JOINED.findall(_SUGGESTION.sub(" ", text))]
    starts = [words[first:] for words in runs for first in range(len(words))]
    names = {"".join(words[:length]) for words in starts for length in range(1, most + 1)}
    names |= {name.removesuffix("s") for name in names}
    return [field for field, value in request.items() if not names.isdisjoint(_names(field, value))]


def _names(field: str, value: Any) -> Iterator[str]:
    """Yield the names of a field and of its parts, in lower case and without underscores."""
    aliases = _WORDS["aliases"].get("response_format" if field in _CONSTRAINTS else field, ())
    parts = [part for part in _parts(value) if "_" in part or part.lower() != part != part.upper()]
    yield from (name.replace("_", "").lower() for name in (field, *aliases, *parts))


def _parts(value: Any) -> Iterator[str]:
    for name, part in value.items() if isinstance(value, dict) else ():
        yield name
        yield from _parts(part)


def _own_words(error: RejectedError, texts: Collection[str]) -> str:
    """Return the text of an error without escapes, web addresses, and quotations of the request and the sample."""
    text = _UNICODE_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), error.text[:MAX_TEXT])
    text = _URL.sub(" ", _ESCAPE.sub(lambda escape: escape[1] or " ", text))
    while quotation := _QUOTED_REQUEST.search(text):
        text = text[: quotation.start()] + text[_closing(text, quotation.end()) :]
    for short in {one.strip() for one in texts if len(_WORD.findall(one[:200])) < QUOTED_WORDS}:
        text = re.sub(rf"(['\"`]){re.escape(short)}\1", " ", text) if short else text
    return _without_quotations(text, texts)


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`, or the end of the text."""
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text[start:]):
        depth += 1 if bracket[0] in "[{" else -1
        if not depth:
            return start + bracket.end()
    return len(text)


def _without_quotations(text: str, texts: Collection[str]) -> str:
    """Return a text without the runs of `QUOTED_WORDS` words that are in one of `texts`, too."""
    words = [*_WORD.finditer(text)]
    runs = set(_runs([word[0] for word in words]))
    quoted = {run for one in texts for run in _runs(_WORD.findall(_ESCAPE.sub(r"\1 ", one))) if run in runs}
    for index in range(len(words) - QUOTED_WORDS, -1, -1):
        if tuple(word[0] for word in words[index : index + QUOTED_WORDS]) in quoted:
            start, end = words[index].start(), words[index + QUOTED_WORDS - 1].end()
            text = text[:start] + " " * (end - start) + text[end:]
    return text


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(QUOTED_WORDS)), strict=False)
