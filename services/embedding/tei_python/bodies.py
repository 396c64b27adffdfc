"""The bodies of TEI's routes (router/src/http/types.rs of its release 1.9)."""

from __future__ import annotations

from typing import Any

from services.embedding.tei_python.json_reader import Mismatch, Reader
from services.embedding.tei_python.shapes import Choice, Count, Field, Flag, ListOf, Maybe, Struct, Text, Untagged

MAX_TOKEN_ID = 2**32 - 1

Input = str | list[int]
"""A text, or its token ids."""


def _token_ids(value: Any) -> list[int]:
    if not isinstance(value, list) or not all(type(part) is int and 0 <= part <= MAX_TOKEN_ID for part in value):
        raise Mismatch
    return value


def _input(value: Any) -> Input:
    return value if isinstance(value, str) else _token_ids(value)


def _one_or_many(value: Any, kind: Any) -> Any:
    """What `kind` takes, or a list of that; an empty list is one empty input and not an empty batch, as in TEI."""
    try:
        return kind(value)
    except Mismatch:
        if not isinstance(value, list):
            raise
        return Batch(kind(part) for part in value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Mismatch
    return value


class Batch(list[Any]):
    """Several inputs, unlike the token ids of one."""


INPUT = Untagged("Input", lambda value: _one_or_many(value, _input))
DIRECTIONS = Choice({"Left": "left", "left": "left", "Right": "right", "right": "right"})
TRUNCATE = Field(Maybe(Flag()), None, trailing=True)
DIRECTION = Field(DIRECTIONS, "right", trailing=True)
PROMPT_NAME = Field(Maybe(Text()), None)
DIMENSIONS = Field(Maybe(Count()), None)

EMBED = Struct(
    "EmbedRequest",
    {
        "inputs": Field(INPUT),
        "truncate": TRUNCATE,
        "truncation_direction": DIRECTION,
        "prompt_name": PROMPT_NAME,
        "normalize": Field(Flag(), True, trailing=True),
        "dimensions": DIMENSIONS,
    },
)
SIMILARITY = Struct(
    "SimilarityRequest",
    {
        "inputs": Field(
            Struct("SimilarityInput", {"source_sentence": Field(Text()), "sentences": Field(ListOf(Text()))})
        ),
        "parameters": Field(
            Maybe(
                Struct(
                    "SimilarityParameters",
                    {
                        "truncate": Field(Maybe(Flag()), None),
                        "truncation_direction": DIRECTION,
                        "prompt_name": PROMPT_NAME,
                    },
                )
            ),
            None,
        ),
    },
)
OPENAI = Struct(
    "OpenAICompatRequest",
    {
        "input": Field(INPUT),
        "model": Field(Maybe(Text()), None),
        "user": Field(Maybe(Text()), None),
        "encoding_format": Field(Choice({"float": "float", "base64": "base64"}), "float", trailing=True),
        "dimensions": DIMENSIONS,
    },
)
TOKENIZE = Struct(
    "TokenizeRequest",
    {
        "inputs": Field(Untagged("TokenizeInput", lambda value: _one_or_many(value, _text))),
        "add_special_tokens": Field(Flag(), True, trailing=True),
        "prompt_name": PROMPT_NAME,
    },
)
DECODE = Struct(
    "DecodeRequest",
    {
        "ids": Field(Untagged("InputIds", lambda value: _one_or_many(value, _token_ids))),
        "skip_special_tokens": Field(Flag(), True, trailing=True),
    },
)


def read(struct: Struct, body: bytes) -> dict[str, Any]:
    """The fields of a body.

    Raises:
        BodyError: it is no JSON, or not what the route takes.
    """
    return struct.read(Reader(body))
