"""Parse the options of the embedding similarity from `extra_info`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import Fields
from rewardstack.scorers.embedding.penalties import PENALTIES
from rewardstack.scorers.names import EMBEDDING_FIELDS

DEFAULT_THRESHOLD = 1.5
"""Default of `length_threshold`."""
DEFAULT_CACHE_SIZE = 10_000
"""Default of `cache_size`, in vectors."""
MAX_THRESHOLD = 1e6
MAX_CACHE_SIZE = 100_000
"""Upper bound on `cache_size`. Clients of a reward server can set `cache_size`, so the memory of the server needs a
limit. As float16, 100,000 vectors of 4096 dimensions take 0.8 GB."""


class RequestParams(NamedTuple):
    """The parameters of a request for vectors; texts with the same parameters can share a request.

    Args:
        model: name of the model, sent only to `/v1/embeddings`; empty for the model that the server reports.
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
        threshold: ratio of the longer to the shorter length, in words, up to which there is no penalty.
        prefix: text prepended to the response and to the references before they are embedded.
        cached: whether scores and vectors are cached.
        cache_size: maximum number of vectors in this process's memory.
        params: the parameters of requests.
    """

    penalty: str = "none"
    threshold: float = DEFAULT_THRESHOLD
    prefix: str = ""
    cached: bool = True
    cache_size: int = DEFAULT_CACHE_SIZE
    params: RequestParams = RequestParams()


DEFAULT = Options()


def read_options(extra: Mapping[str, Any]) -> Options:
    """Parse the options in a sample's `extra_info`.

    Raises:
        RequestError: an option is invalid; the error names the option and the valid values.
    """
    if extra.keys().isdisjoint(EMBEDDING_FIELDS):
        return DEFAULT
    fields = Fields(extra)
    return Options(
        fields.choice("length_penalty", tuple(PENALTIES)),
        fields.number("length_threshold", DEFAULT_THRESHOLD, 1, MAX_THRESHOLD),
        fields.text("prompt_prefix", ""),
        fields.flag("cache_enabled", True),
        int(min(fields.number("cache_size", DEFAULT_CACHE_SIZE, 0, math.inf), MAX_CACHE_SIZE)),
        RequestParams(
            fields.text("model_name", "") or fields.text("model", ""),
            fields.text("prompt_name", ""),
            fields.flag("truncate", True),
        ),
    )
