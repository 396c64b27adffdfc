"""Read what providers say when they refuse a request: rejected fields, a prompt that is too long, an unfinished reply.

No other module of the judge reads these texts. An error may quote the sample, whose text comes from a policy and can
imitate an error, so the sample's words are first cut out. Only fields of the request are returned. Cases, with the
texts of many providers, are in `tests/cases/providers.json` and `judge_rejections.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rewardstack.errors import RejectedError
from rewardstack.scorers.judge.dialect import LIMIT_FIELDS, Dialect, Value

STATUSES = (400, 403, 422)
"""HTTP statuses of errors about the fields of a request."""
MAX_TEXT = 16_384
"""Maximum number of characters of an error that are read."""
QUOTED_WORDS = 3
"""Number of successive words that count as a quotation if the sample has them, too."""
ALIASES = {
    "top_logprobs": ("top_n_tokens",),
    "max_tokens": ("max_output_tokens", "max_new_tokens"),
    "response_format": (
        *("json_schema", "json_mode", "json_object", "response_schema", "response_json_schema", "structured_output"),
        *("structured_outputs", "output_config", "output_format", "invalid_schema", "min_items", "max_items"),
        *("min_length", "max_length", "additional_properties", "pattern_properties"),
    ),
}
"""Names in errors, written with underscores, for fields that have another name in the request."""
_CONSTRAINTS = ("structured_outputs", "guided_regex", "regex")
_SAMPLING = ("temperature", "top_p", "seed", "chat_template_kwargs", "enable_thinking")
"""Fields for which a server may demand a value."""
_ESCAPE = re.compile(r"\\+(?:[nrt]|(.))", re.DOTALL)
_QUOTED_REQUEST = re.compile(r"['\"](?:input|request|body)['\"]: ?(?=[\[{])")
_COMPOUND = re.compile(r"\b(response|json|structured|invalid)[ -](format|schema|mode|object|output)s?\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_URL = re.compile(r"https?://\S+")
_VALUE = r"(?P<{}>-?\d{{1,9}}(?:\.\d{{1,9}})?|true|false)"
_DEMAND = re.compile(
    rf"\bonly\b\W{{0,3}}(?:the default\W{{0,3}})?(?:\w{{1,40}} ?= ?)?{_VALUE.format('only')}\W{{0,2}}(?: ?value)?"
    r"(?: ?is| ?are)? ?(?:allowed|supported|accepted|permitted)\b"
    rf"|\bmust be (?:set to |equal to )?['\"`]?{_VALUE.format('must')}\b(?!\.\d| ?(?:or|to|and|-)\b)",
    re.IGNORECASE,
)
"""A demand such as `only 1 is allowed`, `Only the default (1) value is supported` or `must be set to false`."""
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|context_length_exceeded|exceed_context_size|max_model_len|maximum model length"
    r"|maximum prompt length|(?:prompt|input|inputs|query|request|string|messages?) (?:is|are|was)? ?too (?:long|large)"
    r"|input token count|exceeds? (?:the )?(?:maximum|max|model)(?: number of| allowed| token| input)?"
    r" (?:tokens|length|limit)|model token limit|too many (?:input )?tokens|length of the (?:messages|prompt|input)"
    r"|range of input length|must have less than|longer than the model's context|string_above_max_length"
    r"|inputs` tokens \+",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(
    r"could not finish the message|output limit was reached|json_validate_failed|failed_generation"
    r"|(?:failed|unable|could not|did not)(?: to)? (?:generate|produce|return|validate|create) (?:valid )?json",
    re.IGNORECASE,
)


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
    named = {word.replace("_", "").lower() for word in _WORD.findall(_COMPOUND.sub(r"\1_\2", text))}
    fields = [name for name, value in request.items() if not named.isdisjoint(_names(name, value))]
    if {"temperature", "top_p"} <= {*fields}:
        fields.remove("temperature")
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


def _names(field: str, value: Any) -> Iterator[str]:
    """Yield the names of a field and of its parts, in lower case and without underscores."""
    aliases = ALIASES["response_format"] if field in _CONSTRAINTS else ALIASES.get(field, ())
    parts = [part for part in _parts(value) if "_" in part or part.lower() != part != part.upper()]
    yield from (name.replace("_", "").lower() for name in (field, *aliases, *parts))


def _parts(value: Any) -> Iterator[str]:
    for name, part in value.items() if isinstance(value, dict) else ():
        yield name
        yield from _parts(part)


def _own_words(error: RejectedError, texts: Collection[str]) -> str:
    """Return the text of an error without escapes, web addresses, and quotations of the request and the sample."""
    text = _URL.sub(" ", _ESCAPE.sub(lambda escape: escape[1] or " ", error.text[:MAX_TEXT]))
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
