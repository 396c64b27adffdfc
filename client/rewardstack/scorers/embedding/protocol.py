"""Encode requests and parse replies in the two protocols of embedding servers.

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
from rewardstack.scorers.embedding.options import RequestParams
from rewardstack.scorers.embedding.similarity import Vector, normalize

EMBED = "/embed"
INFO = "/info"
MODELS = "/v1/models"
EMBEDDINGS = "/v1/embeddings"
BATCH = 32
"""Maximum number of texts per request to a server that does not report a limit; TEI's default."""
MAX_BATCH = 1024
"""Upper bound on the number of texts per request, whatever the server reports."""

MAX_TEXT = 2**18
"""Number of characters to which a text is cut if the server may truncate it.

Common models do not read more: a context of 32,768 tokens with eight characters each has this length. As JSON, the cut
text has at most 1.6 MB, so it fits into `MAX_BODY`.
"""
MAX_BODY = 2_000_000
"""Maximum size of a request with several texts, in bytes; TEI by default closes the connection above 2 MB."""

ApiPath = str
"""`EMBED` or `EMBEDDINGS`."""


class ServerInfo(NamedTuple):
    """What a server reports about itself.

    Args:
        identity: what the server reports about its model, as JSON, for cache keys; empty if unknown.
        model: name of the model; empty if unknown.
        batch: maximum number of texts in one request.
        requests: maximum number of concurrent requests if each has `batch` texts; 0 if unknown.
    """

    identity: str
    model: str
    batch: int
    requests: int


UNKNOWN = ServerInfo("", "", BATCH, 0)


def parse_info(reply: bytes) -> ServerInfo | None:
    """Parse a reply from TEI's `/info`; return None if the reply does not name the model."""
    fields = _parse_object(reply)
    model = fields.get("model_id")
    if not isinstance(model, str) or not model:
        return None
    identity = {name: fields.get(name) for name in ("model_id", "model_sha", "model_dtype", "model_type")}
    # Despite its name, `max_concurrent_requests` counts texts: TEI refuses a request with more texts than that.
    permits = _positive_int(fields.get("max_concurrent_requests"), 0)
    batch = min(_positive_int(fields.get("max_client_batch_size"), BATCH), permits or MAX_BATCH, MAX_BATCH)
    return ServerInfo(json.dumps(identity, sort_keys=True), model, batch, permits // batch)


def parse_models(reply: bytes) -> ServerInfo | None:
    """Parse the first model in a reply from OpenAI's `/v1/models`; return None if the reply names no model."""
    models = _parse_object(reply).get("data")
    first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
    model = first.get("id")
    if not isinstance(model, str) or not model:
        return None
    return UNKNOWN._replace(identity=json.dumps([model, first.get("root")]), model=model)


def write_request(path: ApiPath, texts: Sequence[str], params: RequestParams, model: str) -> bytes:
    """Return the body of a request for the vectors of `texts`; unpaired surrogates become question marks.

    Args:
        path: path of the request.
        texts: the texts.
        params: parameters of the request.
        model: the model that the server reports; sent to `/v1/embeddings` if `params` does not name a model.

    Raises:
        RejectedError: `prompt_name` is set, but `path` is `/v1/embeddings`, which does not support it.
    """
    inputs = [text[:MAX_TEXT] for text in texts] if params.truncate else list(texts)
    if path == EMBED:
        body: dict[str, Any] = {"inputs": inputs, "normalize": True, "truncate": params.truncate}
        if params.prompt_name:
            body["prompt_name"] = params.prompt_name
        return _encode(body)
    if params.prompt_name:
        # The status is 404, because the server has replied 404 to /embed. Status 400 or 422 would mean that the server
        # refuses a text.
        raise RejectedError("a server without /embed does not support prompt_name; set prompt_prefix instead", 404)
    return _encode({"input": inputs, "model": params.model or model, "encoding_format": "float"})


def _encode(body: Mapping[str, Any]) -> bytes:
    """Return JSON in UTF-8. Non-ASCII characters are not escaped, because an escape takes at least twice the bytes."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def parse_vectors(path: ApiPath, reply: bytes, count: int) -> list[Vector | ReplyError]:
    """Return the vectors in a reply, normalized and converted to float16; a vector that is not finite becomes an error.

    Args:
        path: the path of the request.
        reply: the body of the reply.
        count: number of texts in the request.

    Raises:
        ReplyError: the reply does not have `count` vectors of the same length.
    """
    try:
        parsed: Any = json.loads(reply)
        rows = parsed if path == EMBED else _ordered_rows(parsed["data"])
        vectors: NDArray[Any] = np.asarray(rows)
        if vectors.dtype.kind not in "fiuO":  # an object array has null
            raise ValueError("not numbers")
        vectors = vectors.astype(np.float64)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ReplyError(f"{path}: the reply is not a list of vectors of the same length") from error
    if vectors.ndim != 2 or vectors.shape[0] != count or not vectors.shape[1]:
        raise ReplyError(f"{path}: the reply has the shape {vectors.shape} for {count} texts")
    is_finite = np.isfinite(vectors).all(axis=1)
    normalized = normalize(np.where(is_finite[:, None], vectors, 0.0))
    bad = ReplyError(f"{path}: a vector contains a value that is not a finite number")
    return [vector.copy() if is_good else bad for vector, is_good in zip(normalized, is_finite, strict=True)]


def _ordered_rows(data: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the vectors by their `index`; by their position if no vector has an index."""
    if all(entry.get("index") is None for entry in data):
        return [entry["embedding"] for entry in data]
    rows = {entry["index"]: entry["embedding"] for entry in data}
    return [rows[index] for index in range(len(data))]


def _parse_object(reply: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _positive_int(value: Any, default: int) -> int:
    """Return `value` if it is a positive integer, else `default`."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
