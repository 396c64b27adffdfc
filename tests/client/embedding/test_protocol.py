"""What servers say of themselves, and replies that are none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rewardstack.errors import RejectedError, ReplyError
from rewardstack.scorers.embedding.options import RequestParams
from rewardstack.scorers.embedding.protocol import (
    BATCH,
    EMBED,
    EMBEDDINGS,
    parse_info,
    parse_models,
    parse_vectors,
    write_request,
)

INFO = {
    "model_id": "Qwen/Qwen3-Embedding-0.6B",
    "model_sha": "c54f2e6e80b2d7b7de06f51cec4959f6b3e03418",
    "model_dtype": "float16",
    "model_type": {"embedding": {"pooling": "last_token"}},
    "max_concurrent_requests": 512,
    "max_client_batch_size": 32,
    "version": "1.9.0",
}

NO_VECTORS: dict[str, Any] = {
    "too few": [[1.0, 2.0]],
    "too many": [[1.0, 2.0]] * 3,
    "of different lengths": [[1.0, 2.0], [1.0]],
    "empty": [[], []],
    "no list": {"error": "x"},
    "words": [["a", "b"], ["c", "d"]],
    "numbers alone": [1.0, 2.0],
    "lists too deep": [[[1.0]], [[2.0]]],
    "nothing": None,
}


@pytest.mark.parametrize("reply", NO_VECTORS.values(), ids=NO_VECTORS)
def test_no_vectors(reply: Any) -> None:
    """A reply that is no list of two vectors of one length is an error, not a guess."""
    with pytest.raises(ReplyError, match="^/embed: "):
        parse_vectors(EMBED, json.dumps(reply).encode(), 2)


@pytest.mark.parametrize("reply", [b"", b"<html>", b"[[1, 2], [3", b"[" * 100_000, b"\xff", b"[[1e999999, 1], [1, 1"])
def test_no_json(reply: bytes) -> None:
    """Neither is one that is no JSON."""
    with pytest.raises(ReplyError):
        parse_vectors(EMBED, reply, 2)


@pytest.mark.parametrize("bad", [b"NaN", b"Infinity", b"-Infinity", b"null", b"1e999"])
def test_one_bad_vector(bad: bytes) -> None:
    """A vector with a value that is not a finite number fails its own text only."""
    good, lost = parse_vectors(EMBED, b"[[1, 0], [" + bad + b", 0]]", 2)
    assert isinstance(good, np.ndarray)
    assert isinstance(lost, ReplyError)


def test_openai_in_order() -> None:
    """`/v1/embeddings` may list its vectors in any order; their index counts."""
    data = [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]
    found = parse_vectors(EMBEDDINGS, json.dumps({"data": data}).encode(), 2)
    assert [[1.0, 0.0], [0.0, 1.0]] == [list(one) for one in found if isinstance(one, np.ndarray)]


@pytest.mark.parametrize("index", [[0, 0], [0, 2], [0, "1"], [0, None]])
def test_openai_out_of_order(index: list[Any]) -> None:
    """Indices that are not those of the texts are an error."""
    data = [{"index": at, "embedding": [1.0, 0.0]} for at in index]
    with pytest.raises(ReplyError):
        parse_vectors(EMBEDDINGS, json.dumps({"data": data}).encode(), 2)


def test_what_tei_says() -> None:
    """`/info` tells the model, the batch, and how many full batches it holds at a time."""
    about = parse_info(json.dumps(INFO).encode())
    assert about is not None
    assert ("Qwen/Qwen3-Embedding-0.6B", 32, 16) == about[1:]


@pytest.mark.parametrize("name", ["model_id", "model_sha", "model_dtype", "model_type"])
def test_identity(name: str) -> None:
    """All that decides what the vectors are is part of the model's identity."""
    first, second = (parse_info(json.dumps(info).encode()) for info in (INFO, {**INFO, name: "other"}))
    assert first is not None
    assert second is not None
    assert first.identity != second.identity


def test_silent_about_limits() -> None:
    """A server that tells its model alone is sent batches of TEI's own default."""
    about = parse_info(b'{"model_id": "m", "max_client_batch_size": null, "max_concurrent_requests": "many"}')
    assert about is not None
    assert (BATCH, 0) == (about.batch, about.requests)


def test_batch_within_permits() -> None:
    """A batch holds no more texts than the server works at altogether: it would always be refused."""
    about = parse_info(b'{"model_id": "m", "max_client_batch_size": 32, "max_concurrent_requests": 8}')
    assert about is not None
    assert (8, 1) == (about.batch, about.requests)


@pytest.mark.parametrize("reply", [b"", b"[]", b"{}", b'{"model_id": ""}', b'{"model_id": 3}', b"ok"])
def test_no_info(reply: bytes) -> None:
    """A reply of another service's is nothing that a server said of itself."""
    assert parse_info(reply) is None


@pytest.mark.parametrize("reply", [b"", b"{}", b'{"data": []}', b'{"data": [1]}', b'{"data": [{"id": 3}]}'])
def test_no_models(reply: bytes) -> None:
    """The same holds for `/v1/models`."""
    assert parse_models(reply) is None


def test_requests() -> None:
    """TEI is sent its options, OpenAI's interface the model's name."""
    asked = RequestParams(prompt_name="query", truncate=False)
    assert {"inputs": ["a"], "normalize": True, "truncate": False, "prompt_name": "query"} == json.loads(
        write_request(EMBED, ["a"], asked, "m")
    )
    assert {"input": ["a"], "model": "m", "encoding_format": "float"} == json.loads(
        write_request(EMBEDDINGS, ["a"], RequestParams(), "m")
    )
    assert "own" == json.loads(write_request(EMBEDDINGS, ["a"], RequestParams(model="own"), "m"))["model"]


def test_no_prompt_name_without_tei() -> None:
    """A prompt's name that the server would pass over is refused with the remedy."""
    with pytest.raises(RejectedError, match="prompt_prefix"):
        write_request(EMBEDDINGS, ["a"], RequestParams(prompt_name="query"), "m")
