"""Scores by an embedding server, and what its options do."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardstack import Request, Score, compute_score, score
from rewardstack.errors import SettingsError
from tests.support.servers import FaultServer, free_port

OPTIONS = json.loads((Path(__file__).parents[2] / "cases" / "embedding_options.json").read_text())
SOURCE = "embedding_remote_test"


def one(solution: str, reference: Any, **extra: Any) -> Score:
    """The score of one sample."""
    return score([Request(SOURCE, solution, reference, extra)])[0]


def cosine(first: str, second: str) -> float:
    """The similarity that the stand-in's vectors, counts of letters, make of two texts."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    a, b = (np.array([text.lower().count(letter) for letter in letters]) for text in (first, second))
    return float((a @ b / np.linalg.norm(a) / np.linalg.norm(b) + 1) / 2)


def test_similarity(server: FaultServer) -> None:
    """A sample scores the cosine of its two vectors, mapped to [0, 1], up to float16."""
    found = one("some text", "another text")
    assert ("ok", "embedding", None) == (found.status, found.source, found.parts)
    assert cosine("some text", "another text") == pytest.approx(found.value, abs=1e-3)


def test_best_reference(server: FaultServer) -> None:
    """Of several references the best counts."""
    assert 1.0 == pytest.approx(one("abc", ["xyz", "cab", "bbb"]).value)
    assert 1.0 == pytest.approx(one("abc", np.array(["xyz", "cab"], dtype=object)).value)


def test_filters(server: FaultServer) -> None:
    """The filters choose among the references before any of them is embedded."""
    references = ["xyz", "abc of the cat"]
    assert one("abc", references, target_gt="xyz").value == pytest.approx(0.5)
    assert one("abc", references, filter_gt_by_prompt_token=True, prompt="name a CAT").value == pytest.approx(
        cosine("abc", "abc of the cat"), abs=1e-3
    )


def test_penalty_by_the_best_reference(server: FaultServer) -> None:
    """The length that counts is that of the reference which is most alike, and the parts tell both factors."""
    found = one("a b c d", ["a b c d a b c d a b c d a b c d", "z z z z"], length_penalty="ratio")
    assert found.parts == pytest.approx({"similarity": 1.0, "length_penalty": 0.25})
    assert found.value == pytest.approx(0.25)


def test_threshold(server: FaultServer) -> None:
    """Within the threshold nothing is lost."""
    assert one("a b c d", "a b c d a b c d", length_penalty="ratio", length_threshold=2.0).value == pytest.approx(1.0)


@pytest.mark.parametrize("case", OPTIONS, ids=[next(iter(case["extra"])) for case in OPTIONS])
def test_malformed_options(case: dict[str, Any], server: FaultServer) -> None:
    """A malformed option leaves its own sample unscored, and the reason says what is known; the others are scored."""
    bad, good = score([Request(SOURCE, "a", "a", case["extra"]), Request(SOURCE, "a", "a")])
    assert ("unscored", "ok") == (bad.status, good.status)
    assert case["says"] in bad.reason


@pytest.mark.parametrize("absent", [None, float("nan")])
def test_absent_options(absent: Any, server: FaultServer) -> None:
    """What the rows of a data frame hold in place of an option is no option."""
    names = ("length_penalty", "length_threshold", "cache_enabled", "cache_size", "prompt_name", "prompt_prefix")
    assert one("abc", "abc", **dict.fromkeys(names, absent)).value == pytest.approx(1.0)


@pytest.mark.parametrize("empty", ["", " \n"])
def test_empty_texts(empty: str, server: FaultServer) -> None:
    """An empty response scores 0, a sample without a reference is unscored; no server is asked about either."""
    response, reference = score([Request(SOURCE, empty, "a"), Request(SOURCE, "a", empty)])
    assert ("ok", 0.0, "the response is empty") == (response.status, response.value, response.reason)
    assert ("unscored", 0.0) == (reference.status, reference.value)
    assert 0 == server.stats()["requests"]


def test_empty_texts_without_a_server(server: FaultServer) -> None:
    """That holds as well when the server is gone, and others in the batch fail."""
    server.kill()
    gone = {"timeout": 0.2}  # expires
    requests = [Request(SOURCE, "", "a"), Request(SOURCE, "a", ""), Request(SOURCE, "a", "a", gone)]
    assert ["ok", "unscored", "failed"] == [each.status for each in score(requests, on_error="none")]


def test_instruction_on_both_sides(server: FaultServer) -> None:
    """A prefix stands before both texts, a prompt's name goes with both, and the length is that of the bare texts."""
    found = one("a b", "a b", prompt_prefix="Instruct: compare\nQuery:", length_penalty="ratio", length_threshold=1.0)
    assert found.value == pytest.approx(1.0)
    assert [len("Instruct: compare\nQuery:a b")] == server.stats()["batches"][0]
    one("a", "b", prompt_name="query")
    assert {"normalize": True, "truncate": True, "prompt_name": "query"} == server.stats()["body"]


def test_instruction_is_part_of_the_key(server: FaultServer) -> None:
    """The same texts under another instruction, or untruncated, are another question."""
    variants: list[dict[str, Any]] = [
        {},
        {"prompt_name": "q"},
        {"prompt_prefix": "q"},
        {"truncate": False},
        {"model": "m"},
    ]
    for extra in variants:
        assert not one("a", "b", **extra).cached
        assert one("a", "b", **extra).cached


def test_no_server_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server of either kind the error names the variable and the remedy."""
    with pytest.raises(SettingsError, match="EMBEDDING_SERVER_URL is not set; start a server with `make up`"):
        one("a", "b")


def test_server_of_the_sample(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample's own server is asked with the sample's own key; the environment's key stays at home."""
    monkeypatch.setenv("EMBEDDING_SERVER_API_KEY", "home")
    server.set(key="theirs")
    monkeypatch.setenv("EMBEDDING_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    assert one("a", "a", server_url=server.url, api_key="theirs").value == pytest.approx(1.0)
    refused = one("a", "b", server_url=server.url)
    assert "fallback" == refused.status and "no key was sent" in refused.reason and "home" not in refused.reason


def test_wrong_key_is_said(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not take the key is a failure that names the variable; the key itself is in no reason."""
    monkeypatch.setenv("EMBEDDING_SERVER_API_KEY", "my-secret")
    server.set(key="another")
    [refused] = score([Request(SOURCE, "a", "b")], on_error="none")
    assert ("failed", None) == (refused.status, refused.value)
    assert "EMBEDDING_SERVER_API_KEY; set it" in refused.reason and "my-secret" not in refused.reason


def test_one_samples_key_is_its_own_affair(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample whose key is refused costs no other sample of its batch its score."""
    monkeypatch.setenv("EMBEDDING_SERVER_API_KEY", "right")
    server.set(key="right")
    extras: list[dict[str, Any]] = [{}, {"api_key": "wrong"}, {}]
    found = score([Request(SOURCE, f"{at} a", f"{at} b", extra) for at, extra in enumerate(extras)], on_error="zero")
    assert ["ok", "failed", "ok"] == [one.status for one in found]
    assert "the server refuses the key in extra_info.api_key" in found[1].reason


def test_openai_only(server: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A server that has `/v1/embeddings` alone is asked there, after one look for `/embed`, with its model's name."""
    server.set(embed=False, info=None, models=[{"id": "served", "root": "org/served"}])
    with caplog.at_level(logging.WARNING):
        for text in ("first", "second", "third"):
            assert one(text, text).status == "ok"
    assert (1, 3) == (server.stats()["embed"], server.stats()["openai"])
    assert "served" == server.stats()["body"]["model"]
    assert not caplog.records


def test_unknown_model_is_not_cached(server: FaultServer) -> None:
    """Where nobody says whose vectors they are, no score is kept; a model that the sample names is enough."""
    server.set(info=None)
    assert [False, False] == [one("a", "b").cached for _ in range(2)]
    assert [False, True] == [one("a", "b", model="mine").cached for _ in range(2)]


def test_details(server: FaultServer) -> None:
    """verl's dict has the same numeric keys as for every service."""
    found = compute_score(SOURCE, "abc", "abc", details=True)
    assert {"score", "acc", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"} == set(found)
    assert found["score"] == pytest.approx(1.0)
