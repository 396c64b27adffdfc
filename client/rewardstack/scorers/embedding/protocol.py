"""The two protocols of embedding servers: request bodies, and validation of replies.

Text Embeddings Inference: `GET /info`, `POST /embed` (https://huggingface.github.io/text-embeddings-inference).
OpenAI: `GET /v1/models`, `POST /v1/embeddings` (https://platform.openai.com/docs/api-reference/embeddings).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardstack.errors import RejectedError, ReplyError
from rewardstack.scorers.embedding.options import Asked
from rewardstack.scorers.embedding.similarity import Vector, rounded

EMBED = "/embed"
INFO = "/info"
OPENAI = "/v1/embeddings"
BATCH = 32
"""Maximum number of texts per request to a server that does not report a limit; TEI's default."""
BATCH_MOST = 1024
"""Upper bound on the number of texts per request, whatever the server reports."""

TEXT_MOST = 2**18
"""Maximum number of characters to send of a text that the server may truncate: eight characters for each of 32,768
tokens, the longest context of common models. This is at most 1.6 MB of JSON."""
BODY_MOST = 2_000_000
"""Maximum size of a request with several texts, in bytes; above it, TEI by default closes the connection."""

Path = str


class About(NamedTuple):
    """What a server reports about itself.

    Args:
        identity: the known properties of the model, as JSON, for cache keys; empty if the model is unknown.
        model: name of the model; empty if unknown.
        batch: maximum number of texts in one request.
        requests: maximum number of concurrent requests with `batch` texts each; 0 if unknown.
    """

    identity: str
    model: str
    batch: int
    requests: int


UNKNOWN = About("", "", BATCH, 0)


def read_info(reply: bytes) -> About | None:
    """Parse a reply of TEI's `/info`; return None if it is not one."""
    record = _record(reply)
    model = record.get("model_id")
    if not isinstance(model, str) or not model:
        return None
    named = {name: record.get(name) for name in ("model_id", "model_sha", "model_dtype", "model_type")}
    # The limit counts texts: TEI always refuses a request that has more texts than permits.
    permits = _count(record.get("max_concurrent_requests"), 0)
    batch = min(_count(record.get("max_client_batch_size"), BATCH), permits or BATCH_MOST, BATCH_MOST)
    return About(json.dumps(named, sort_keys=True), model, batch, permits // batch)


def read_models(reply: bytes) -> About | None:
    """Parse the first model in a reply of OpenAI's `/v1/models`; return None if it is not one."""
    models = _record(reply).get("data")
    first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
    model = first.get("id")
    if not isinstance(model, str) or not model:
        return None
    return UNKNOWN._replace(identity=json.dumps([model, first.get("root")]), model=model)


def write_request(path: Path, texts: Sequence[str], asked: Asked, model: str) -> bytes:
    """Return the body of a request for the vectors of `texts`; unpaired surrogates become question marks.

    Raises:
        RejectedError: `prompt_name` is set, which `/v1/embeddings` does not support.
    """
    sent = [text[:TEXT_MOST] for text in texts] if asked.truncate else list(texts)
    if path == EMBED:
        body: dict[str, Any] = {"inputs": sent, "normalize": True, "truncate": asked.truncate}
        if asked.prompt_name:
            body["prompt_name"] = asked.prompt_name
        return _encoded(body)
    if asked.prompt_name:
        raise RejectedError("a server without /embed does not support prompt_name; set prompt_prefix instead", 404)
    return _encoded({"input": sent, "model": asked.model or model, "encoding_format": "float"})


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Return JSON in UTF-8, which takes at most half the bytes of ASCII escapes for non-ASCII text."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def read_vectors(path: Path, reply: bytes, count: int) -> list[Vector | ReplyError]:
    """Return the vectors in a reply, normalized and rounded; a vector that is not finite becomes an error.

    Args:
        path: the path of the request.
        reply: the body of the reply.
        count: number of texts in the request.

    Raises:
        ReplyError: the reply does not have `count` vectors of the same length.
    """
    try:
        parsed: Any = json.loads(reply)
        rows = parsed if path == EMBED else _in_order(parsed["data"])
        vectors: NDArray[Any] = np.asarray(rows, dtype=np.float64)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise ReplyError(f"{path}: the reply is not a list of vectors of one length") from error
    if vectors.ndim != 2 or vectors.shape[0] != count or not vectors.shape[1]:
        raise ReplyError(f"{path}: the reply has the shape {vectors.shape} for {count} texts")
    finite = np.isfinite(vectors).all(axis=1)
    kept = rounded(np.where(finite[:, None], vectors, 0.0))
    bad = ReplyError(f"{path}: a vector contains a value that is not a finite number")
    return [one.copy() if good else bad for one, good in zip(kept, finite, strict=True)]


def _in_order(data: Sequence[Mapping[str, Any]]) -> list[Any]:
    rows: list[Any] = [None] * len(data)
    for one in data:
        rows[one["index"]] = one["embedding"]
    return rows


def _record(reply: bytes) -> dict[str, Any]:
    try:
        record = json.loads(reply)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _count(value: Any, default: int) -> int:
    """Return `value` if it is a positive integer, else `default`."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
