"""Options of the embedding similarity, from `extra_info`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import Fields
from rewardstack.scorers.embedding.penalties import PENALTIES
from rewardstack.scorers.names import EMBEDDING_FIELDS

THRESHOLD = 1.5
"""Default of `length_threshold`."""
CACHE_SIZE = 10_000
"""Default of `cache_size`, in vectors."""
THRESHOLD_MOST = 1e6
CACHE_SIZE_MOST = 100_000
"""Upper bound on `cache_size`, which any client of a reward server can set: 0.8 GB at 4096 dimensions."""


class Asked(NamedTuple):
    """The parameters of a request for vectors, which are the same for all texts of a batch.

    Args:
        model: name of the model, sent to `/v1/embeddings` only; empty for the model that the server reports.
        prompt_name: name of a prompt in the model's configuration, sent to TEI only; empty for none.
        truncate: whether the server truncates texts that are too long; otherwise it refuses them.
    """

    model: str = ""
    prompt_name: str = ""
    truncate: bool = True


class Options(NamedTuple):
    """A sample's options for the embedding similarity.

    Args:
        penalty: penalty for a difference in length, one of `PENALTIES`.
        threshold: how many times as long as the other text one text may be without a penalty.
        prefix: text prepended to the response and to the references before they are embedded.
        cached: whether scores and vectors are cached.
        cache_size: maximum number of vectors in this process's memory.
        asked: the parameters of requests.
    """

    penalty: str = "none"
    threshold: float = THRESHOLD
    prefix: str = ""
    cached: bool = True
    cache_size: int = CACHE_SIZE
    asked: Asked = Asked()


DEFAULT = Options()


def read_options(extra: Mapping[str, Any]) -> Options:
    """Parse the options in a sample's `extra_info`.

    Raises:
        RequestError: an option is invalid; the error names the option and the valid values.
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
