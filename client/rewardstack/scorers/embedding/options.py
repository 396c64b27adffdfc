"""Options of the embedding similarity: fields of `extra_info`, checked.

None and NaN stand for a field that is not there, as they do in the rows of a Parquet file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardstack.core.json_types import is_finite, plain
from rewardstack.errors import RequestError
from rewardstack.scorers.embedding.penalties import PENALTIES

FIELDS = (
    *("length_penalty", "length_threshold"),
    *("prompt_name", "prompt_prefix", "truncate", "model", "model_name"),
    *("cache_enabled", "cache_size"),
)
"""The fields that are read; those of every scorer (`server_url`, `api_key`, `timeout`) aside."""

THRESHOLD = 1.5
CACHE_SIZE = 10_000
THRESHOLD_MOST = 1e6
CACHE_SIZE_MOST = 100_000
"""Vectors kept whatever is asked: 0.8 GB at 4096 dimensions, and whoever may ask a reward server may ask for them."""


class Asked(NamedTuple):
    """What is asked of the server with every text.

    Args:
        model: by its name; only `/v1/embeddings` is told. Empty for the one that the server serves.
        prompt_name: of a prompt in the model's own configuration; empty for none.
        truncate: whether a text beyond the model's length is cut rather than refused.
    """

    model: str = ""
    prompt_name: str = ""
    truncate: bool = True


class Options(NamedTuple):
    """A sample's options.

    Args:
        penalty: for a difference in length, one of `PENALTIES`.
        threshold: how many times longer one text may be without a penalty.
        prefix: stands before both texts when they are embedded.
        cached: whether scores and vectors are kept.
        cache_size: vectors that this process keeps.
        asked: of the server.
    """

    penalty: str = "none"
    threshold: float = THRESHOLD
    prefix: str = ""
    cached: bool = True
    cache_size: int = CACHE_SIZE
    asked: Asked = Asked()


DEFAULT = Options()


def read_options(extra: Mapping[str, Any]) -> Options:
    """The options in an `extra_info`.

    Raises:
        RequestError: one of them is malformed; the message names it and what is known.
    """
    if not extra:
        return DEFAULT
    given = {name: value for name in FIELDS if name in extra and not _is_absent(value := plain(extra[name]))}
    if not given:
        return DEFAULT
    return Options(
        _choice(given, "length_penalty"),
        _number(given, "length_threshold", THRESHOLD, 1.0, THRESHOLD_MOST),
        _text(given, "prompt_prefix"),
        _flag(given, "cache_enabled"),
        int(min(_number(given, "cache_size", CACHE_SIZE, 0, math.inf), CACHE_SIZE_MOST)),
        Asked(
            _text(given, "model_name") or _text(given, "model"), _text(given, "prompt_name"), _flag(given, "truncate")
        ),
    )


def _choice(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "none")
    if not isinstance(value, str) or value not in PENALTIES:
        raise _error(name, value, f"none of {', '.join(PENALTIES)}")
    return value


def _number(given: Mapping[str, Any], name: str, default: float, least: float, most: float) -> float:
    value = given.get(name, default)
    if not is_finite(value) or not least <= value <= most:
        raise _error(name, value, f"no number from {least:g} to {most:g}")
    return float(value)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise _error(name, value, "no string")
    return value


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, True)
    if not isinstance(value, bool):
        raise _error(name, value, "neither true nor false")
    return value


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _error(name: str, value: Any, complaint: str) -> RequestError:
    shown = repr(value) if isinstance(value, (str, int, float, bool)) else f"a value of type {type(value).__name__}"
    return RequestError(f"extra_info.{name}: {shown[:50]} is {complaint}", f"extra_info.{name}")
