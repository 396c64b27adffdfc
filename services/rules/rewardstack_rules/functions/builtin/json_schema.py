"""`json_schema`: 1 if the response's JSON is valid under a JSON Schema from the request, else 0.

Patterns in a schema can make validation very slow, so it runs in a process that can be killed. A `$ref` resolves within
the schema, or to a meta-schema of JSON Schema; nothing is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from rewardstack.core.fields import field_error
from rewardstack_rules.code.extraction import fenced_blocks
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_verifier.transcript import split_reasoning

MAX_JSON = 100_000
"""Maximum number of characters in the response's JSON, and in the schema."""
MAX_NESTING = 50
"""Maximum depth of nested objects and lists in the response."""
LABELS = ("json", "")
"""Tags of fenced blocks that are read as JSON, the preferred one first; empty for blocks without a tag."""
SPACES = r"\s\xa0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `\\s` matches in ECMA-262, as a part of a character class of `re` with the flag `re.ASCII`."""
ESCAPE = re.compile(r"\\.", re.DOTALL)
PATTERN_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\Z)|\$", re.DOTALL)
"""Matches an escaped character, a character class or `$` in a pattern."""


def json_schema(response: str, *, schema: Any) -> Outcome:
    """Validate the JSON in the last closed block with the tag `json`, else in the last one without a tag.

    Without such a block, validate the response.

    Args:
        response: the policy's text; reasoning before the answer (`</think>`) is ignored, unless all of it is JSON.
        schema: a JSON Schema, as an object or as text; draft 2020-12 unless its `$schema` names another one. The
            keyword `format` is not checked.

    Raises:
        RequestError: the schema is malformed, too long or too deeply nested, or has a `$ref` that points outside of it
            or that recurses endlessly.
    """
    validator = _validator(_schema_text(schema))
    for text in _json_texts(response):
        if len(text) > MAX_JSON:
            return Outcome(0.0, f"the JSON is longer than {MAX_JSON} characters")
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            return Outcome(0.0, "the JSON is too deeply nested")
        except ValueError:
            continue
        if _is_deeper(value, MAX_NESTING):
            return Outcome(0.0, "the JSON is too deeply nested")
        return _validate(validator, value)
    return Outcome(0.0, "neither the response nor its last fenced block is JSON")


def _validate(validator: Any, value: Any) -> Outcome:
    try:
        error = next(validator.iter_errors(value), None)
    except Unresolvable as failure:
        raise field_error(
            "schema", "a $ref leads out of the schema; copy the referenced schema into $defs"
        ) from failure
    except RecursionError as failure:
        raise field_error("schema", "has a $ref that recurses endlessly") from failure
    except (ValueError, re.error) as failure:  # malformed URIs and patterns, which `check_schema` may accept
        raise field_error("schema", f"cannot be used: {str(failure)[:100]}") from failure
    if error is None:
        return Outcome(1.0)
    return Outcome(0.0, f"{error.json_path[:100]} does not fit the schema's {str(error.validator)[:50]}")


def _schema_text(schema: Any) -> str:
    text = json.dumps(schema, sort_keys=True) if isinstance(schema, Mapping) else schema
    if not isinstance(text, str):
        raise field_error("schema", "must be a JSON Schema: an object, or its text")
    if len(text) > MAX_JSON:
        raise field_error("schema", f"is longer than {MAX_JSON} characters")
    return text


@lru_cache(maxsize=16)
def _validator(text: str) -> Any:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise field_error("schema", "is not valid JSON") from error
    if not isinstance(schema, dict) or not isinstance(schema.get("$schema", ""), str):
        raise field_error("schema", "must be a JSON Schema: an object, or its text")
    try:
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema)
    except SchemaError as error:
        raise field_error("schema", f"is not a valid JSON Schema: {error.message[:100]}") from error
    except ValueError as error:
        raise field_error("schema", f"cannot be used: {str(error)[:100]}") from error
    except RecursionError as error:
        raise field_error("schema", "is too deeply nested") from error
    ours = extend(kind, {name: check for name, check in KEYWORDS.items() if name in kind.VALIDATORS})
    # Remove `$schema`: if a `$ref` leads to a schema that has it, jsonschema validates with `kind` instead of `ours`.
    return ours({name: part for name, part in schema.items() if name != "$schema"}, registry=EMPTY_REGISTRY)


def _multiple_of(validator: Any, step: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Check `multipleOf` with decimal numbers instead of floats, so that 19.99 is a multiple of 0.01."""
    if not validator.is_type(value, "number"):
        return
    try:
        is_multiple = Fraction(repr(value)) % Fraction(repr(step)) == 0
    except ValueError:  # 1e999 is read as infinity
        is_multiple = False
    if not is_multiple:
        yield ValidationError("not a multiple")


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Check `pattern`, which means what it means in ECMA-262.

    `$` matches only at the very end, while Python's `$` also matches before a final line break. `\\w` and `\\d` match
    only ASCII characters, and `\\s` all spaces.
    """
    if validator.is_type(value, "string") and not re.search(_as_python(pattern), value, re.ASCII):
        yield ValidationError("does not match")


@lru_cache(maxsize=256)
def _as_python(pattern: str) -> str:
    return PATTERN_PART.sub(_part_as_python, pattern)


def _part_as_python(part: re.Match[str]) -> str:
    if part[0] == "$":
        return r"\Z"
    if part[0].startswith("["):
        return ESCAPE.sub(lambda escape: SPACES if escape[0] == r"\s" else escape[0], part[0])
    return f"[{SPACES}]" if part[0] == r"\s" else part[0]


KEYWORDS = {"multipleOf": _multiple_of, "pattern": _pattern}
"""Keywords that are checked here instead of in `jsonschema`."""


def _json_texts(response: str) -> Iterator[str]:
    """Yield the texts that may be the response's JSON; the first one that is JSON counts."""
    answer = split_reasoning(response)[1]
    contents = {tag: content.strip() for tag, content in fenced_blocks(answer)}
    if fenced := next(filter(None, map(contents.get, LABELS)), ""):
        yield fenced
    else:
        yield response.strip()
        yield answer.strip()


def _is_deeper(value: Any, max_depth: int) -> bool:
    level = [value]
    for _ in range(max_depth + 1):
        level = [member for node in level if isinstance(node, (dict, list)) for member in _members(node)]
    return bool(level)


def _members(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
