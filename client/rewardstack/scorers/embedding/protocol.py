"""The two protocols: bodies of requests, and replies read with distrust.

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
"""Texts in a request to a server that does not say how many it takes; TEI's own default."""
BATCH_MOST = 1024

TEXT_MOST = 2**18
"""Characters of a text that are sent where it may be cut: eight for each of 32,768 tokens, which is as much as the
longest-reading of the models takes; as JSON 1.6 MB at most."""
BODY_MOST = 2_000_000
"""Bytes of a request of several texts: TEI takes no more by default, and breaks the connection on which more comes."""

Path = str


class About(NamedTuple):
    """What a server says of itself.

    Args:
        identity: all that is known of its model, empty where nothing is.
        model: its name.
        batch: texts that it takes in one request.
        requests: full requests that it holds at a time, 0 where it does not say.
    """

    identity: str
    model: str
    batch: int
    requests: int


UNKNOWN = About("", "", BATCH, 0)


def read_info(reply: bytes) -> About | None:
    """What TEI's `/info` says, None where it is no such reply."""
    record = _record(reply)
    model = record.get("model_id")
    if not isinstance(model, str) or not model:
        return None
    named = {name: record.get(name) for name in ("model_id", "model_sha", "model_dtype", "model_type")}
    # A request takes a permit for each of its texts or is refused as a whole, so more than all permits never pass.
    permits = _count(record.get("max_concurrent_requests"), 0)
    batch = min(_count(record.get("max_client_batch_size"), BATCH), permits or BATCH_MOST, BATCH_MOST)
    return About(json.dumps(named, sort_keys=True), model, batch, permits // batch)


def read_models(reply: bytes) -> About | None:
    """What OpenAI's `/v1/models` says of the first model, None where it is no such reply."""
    models = _record(reply).get("data")
    first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
    model = first.get("id")
    if not isinstance(model, str) or not model:
        return None
    return UNKNOWN._replace(identity=json.dumps([model, first.get("root")]), model=model)


def write_request(path: Path, texts: Sequence[str], asked: Asked, model: str) -> bytes:
    """The body that asks `path` for the vectors of `texts`; half a surrogate pair is sent as a question mark.

    Raises:
        RejectedError: `/v1/embeddings` knows no `prompt_name`.
    """
    sent = [text[:TEXT_MOST] for text in texts] if asked.truncate else list(texts)
    if path == EMBED:
        body: dict[str, Any] = {"inputs": sent, "normalize": True, "truncate": asked.truncate}
        if asked.prompt_name:
            body["prompt_name"] = asked.prompt_name
        return _encoded(body)
    if asked.prompt_name:
        raise RejectedError("a server without /embed knows no prompt_name; write it out in prompt_prefix", 404)
    return _encoded({"input": sent, "model": asked.model or model, "encoding_format": "float"})


def _encoded(body: Mapping[str, Any]) -> bytes:
    """As UTF-8, which is at most half as long as the escapes of ASCII JSON for what is not ASCII."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def read_vectors(path: Path, reply: bytes, count: int) -> list[Vector | ReplyError]:
    """The vectors in a reply, each brought to length 1 and rounded; an error for each that holds no numbers.

    Args:
        path: that was asked.
        reply: its body.
        count: texts that were asked for.

    Raises:
        ReplyError: it is no list of `count` vectors of one length.
    """
    try:
        parsed: Any = json.loads(reply)
        rows = parsed if path == EMBED else _in_order(parsed["data"])
        vectors: NDArray[Any] = np.asarray(rows, dtype=np.float64)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise ReplyError(f"{path}: the reply is no list of vectors of one length") from error
    if vectors.ndim != 2 or vectors.shape[0] != count or not vectors.shape[1]:
        raise ReplyError(f"{path}: the reply has the shape {vectors.shape} for {count} texts")
    finite = np.isfinite(vectors).all(axis=1)
    kept = rounded(np.where(finite[:, None], vectors, 0.0))
    bad = ReplyError(f"{path}: a vector holds what is no number")
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
    """`value` as a number of things, at least 1."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
