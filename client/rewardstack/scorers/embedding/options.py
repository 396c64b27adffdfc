"""Options of the embedding similarity: fields of `extra_info`, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import Fields
from rewardstack.scorers.embedding.penalties import PENALTIES
from rewardstack.scorers.names import EMBEDDING_FIELDS

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
    if extra.keys().isdisjoint(EMBEDDING_FIELDS):
        return DEFAULT
    given = Fields(extra)
    return Options(
        given.choice("length_penalty", tuple(PENALTIES)),
        given.number("length_threshold", THRESHOLD, 1, THRESHOLD_MOST),
        given.text("prompt_prefix", ""),
        given.flag("cache_enabled", True),
        int(min(given.number("cache_size", CACHE_SIZE, 0, math.inf), CACHE_SIZE_MOST)),
        Asked(
            given.text("model_name", "") or given.text("model", ""),
            given.text("prompt_name", ""),
            given.flag("truncate", True),
        ),
    )
