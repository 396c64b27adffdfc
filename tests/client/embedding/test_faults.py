"""Faulty servers: lexical similarity in place of a score, or none, as the policy says; no exception unasked."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, compute_score, register_route, score
from rewardstack.client import _registered
from rewardstack.errors import ScoringError
from rewardstack.pipeline import stages
from rewardstack.pipeline.stages import fall_back
from rewardstack.score import OnError, Usage
from rewardstack.scorers.embedding.lexical import MAX_CHARACTERS, lexical_similarity
from tests.rules.conftest import running
from tests.support.servers import FaultServer

SOURCE = "embedding_remote"
FAULTS = ("gone", "hang", "drop", "garbage", "short", "ragged", "nan", "null", "404", "424", "500", "503", "429")
WARNING = "falling back to lexical similarity for 3 of 3 samples"


def spoil(server: FaultServer, fault: str) -> None:
    """Makes the server faulty."""
    if fault == "gone":
        server.kill()
    else:
        server.set(mode=fault)


def three(label: str = "", **extra: Any) -> list[Request]:
    """Three samples that give up after 0.3 seconds."""
    extra = {"timeout": 0.3, **extra}  # expires
    return [Request(SOURCE, f"{label} Candidate {at}", f"reference {at}", extra) for at in range(3)]


def ratio(request: Request) -> float:
    """difflib's ratio of a sample's texts."""
    return SequenceMatcher(None, request.solution_str.lower(), request.ground_truth.lower()).ratio()


@pytest.mark.parametrize("fault", FAULTS)
def test_lexical_by_default(fault: str, server: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """Each sample scores difflib's ratio with status `fallback`, with one warning a batch; nothing is cached."""
    spoil(server, fault)
    with caplog.at_level(logging.WARNING):
        found = score(three())
    assert [("fallback", False)] * 3 == [(one.status, one.cached) for one in found]
    assert [ratio(one) for one in three()] == [one.value for one in found]
    assert all(one.reason.startswith("lexical similarity, because: ") for one in found)
    assert 1 == sum(WARNING in record.getMessage() for record in caplog.records)
    assert not any("samples failed" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("fault", ["nan", "short", "500"])
def test_back_to_similarity(fault: str, server: FaultServer) -> None:
    """Once the server is healthy again, scores are similarities: neither fallbacks nor faulty vectors were cached."""
    server.set(mode=fault)
    score(three())
    server.set(mode="ok")
    assert [("ok", False)] * 3 == [(one.status, one.cached) for one in score(three(timeout=60))]


@pytest.mark.parametrize(("policy", "value"), [("zero", 0.0), ("none", None)])
def test_no_substitute_unless_wanted(policy: OnError, value: float | None, server: FaultServer) -> None:
    """Under another policy the samples stay failed."""
    server.set(mode="500")
    assert [("failed", value)] * 3 == [(one.status, one.value) for one in score(three(), on_error=policy)]


def test_raise_when_asked(server: FaultServer) -> None:
    """An exception comes only where one is asked for, and carries the scores."""
    server.set(mode="500")
    with pytest.raises(ScoringError, match="sample 0: failed") as caught:
        compute_score(SOURCE, "a", "b", {"timeout": 0.3}, on_error="raise")  # expires
    assert ["failed"] == [one.status for one in caught.value.scores]


def test_penalty_on_the_substitute(server: FaultServer) -> None:
    """The length penalty applies to the substitute as it does to the similarity."""
    server.set(mode="500")
    extra = {"length_penalty": "ratio", "timeout": 0.3}  # expires
    found = score([Request(SOURCE, "a b c d", "a b c d " * 4, extra)])[0]
    assert found.parts is not None
    assert (0.25, "fallback") == (found.parts["length_penalty"], found.status)
    assert found.value == pytest.approx(0.25 * found.parts["similarity"])


def test_best_reference_of_the_substitute(server: FaultServer) -> None:
    """The substitute is the best over the references, too."""
    server.set(mode="500")
    assert 1.0 == compute_score(SOURCE, "Abc", ["xyz", "aBC", "abd"], {"timeout": 0.3})  # expires


def test_zero_vectors(server: FaultServer) -> None:
    """A text whose vector is all zeros is like nothing: the score is 0, and it is a score."""
    server.set(mode="zero")
    assert {("ok", 0.0)} == {(one.status, one.value) for one in score(three(timeout=60))}


def test_different_lengths(server: FaultServer) -> None:
    """Vectors of different lengths are not compared."""
    server.set(mode="uneven")
    references = [f"reference {at}" for at in range(32)]
    found = score([Request(SOURCE, "the candidate", references)], on_error="none")[0]
    assert ("failed", True) == (
        found.status,
        re.fullmatch("the server returned vectors of different lengths: 2[67] and 2[67]", found.reason) is not None,
    )


def test_another_length_than_before(server: FaultServer) -> None:
    """A text whose vector is kept is asked again where the model gives longer ones now."""
    assert "ok" == score([Request(SOURCE, "first", "shared")])[0].status
    server.set(mode="longer")
    assert "ok" == score([Request(SOURCE, "second", "shared")], on_error="none")[0].status
    assert 4 == server.stats()["texts"]


@pytest.fixture
def routes() -> Iterator[None]:
    """Routes made of the similarity, with and without a substitute."""
    for name, policy in (("similar_lexical", "lexical"), ("similar_zero", "zero")):
        register_route(name, {"sum": [{"route": SOURCE, "weight": 0.5}], "on_error": policy})
    yield
    for name in ("similar_lexical", "similar_zero"):
        del _registered[name]


def test_part_of_a_route(server: FaultServer, routes: None) -> None:
    """Within a route of several parts the substitute counts where the route's own policy is `lexical`."""
    server.set(mode="500")
    extra = {"timeout": 0.3}  # expires
    lexical, zero = (score([Request(f"similar_{name}", "abc", "abd", extra)])[0] for name in ("lexical", "zero"))
    assert ("fallback", {SOURCE: pytest.approx(2 / 3)}) == (lexical.status, lexical.parts)
    assert ("failed", 0.0) == (zero.status, zero.value)


def test_within_the_limit_of_the_call(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with a time limit keeps some of it for the substitutes."""
    monkeypatch.setattr(stages, "RESERVED_SHARE", 0.95)
    monkeypatch.setattr(stages, "RESERVED_SECONDS", 60.0)
    server.set(mode="hang")
    requests = [Request(SOURCE, f"candidate {at}", f"reference {at}") for at in range(100)]
    assert {"fallback"} == {one.status for one in score(requests, timeout=60)}


@pytest.mark.usefixtures("needs_process")
def test_through_a_reward_server(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the reward server alone knows the embedding server, it scores, substitutes, and is substituted itself."""
    with running(tmp_path, "--workers", "1", EMBEDDING_SERVER_URL=server.url) as reward_server:
        monkeypatch.delenv("EMBEDDING_SERVER_URL")
        monkeypatch.setenv("REWARD_SERVER_URL", reward_server.url)
        options = {"length_penalty": "ratio", "length_threshold": 1.0}
        found = score([Request(SOURCE, "a b", "a b c d", options), Request(SOURCE, "a", "b", {"length_penalty": "x"})])
        assert ["ok", "unscored"] == [one.status for one in found]
        assert found[0].parts is not None
        assert 0.5 == found[0].parts["length_penalty"]
        server.set(mode="500")
        assert {"fallback"} == {one.status for one in score(three())}
        assert {"failed"} == {one.status for one in score(three("strict"), on_error="none")}
    found = score(three("alone"))
    assert {"fallback"} == {one.status for one in found}
    assert [ratio(one) for one in three("alone")] == [one.value for one in found]


LEXICAL = [
    ("The cat sat.", "the CAT sat"),
    ("", ""),
    ("abc", ""),
    ("kitten " * 60, "sitting " * 70),
    ("naïve İstanbul ß", "naive istanbul ss"),
    ("x" * MAX_CHARACTERS, "x" * (MAX_CHARACTERS - 1)),
]


@pytest.mark.parametrize(("first", "second"), LEXICAL, ids=range(len(LEXICAL)))
def test_ratio(first: str, second: str) -> None:
    """Up to the bound the similarity is difflib's ratio to the last bit, its heuristic for long texts included."""
    assert SequenceMatcher(None, first.lower(), second.lower()).ratio() == lexical_similarity(first, second)


def test_long_texts_are_cut() -> None:
    """What is beyond the bound is not compared."""
    long = "word " * MAX_CHARACTERS
    assert lexical_similarity(long, "word") == lexical_similarity(long[:MAX_CHARACTERS], "word")


class Slow:
    """Makes substitutes as soon as `released` is set."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.threads: set[threading.Thread] = set()

    def __call__(self) -> Score:
        """A substitute."""
        self.threads.add(threading.current_thread())
        self.released.wait(600)
        return Score(0.5, "fallback")


async def test_what_a_failed_score_took() -> None:
    """A substitute says what was spent in vain before it."""
    failed = Score(None, "failed", "gone", usage=Usage(2, 0, 0, 2))
    scores = [failed]
    await fall_back("any", {0: lambda: Score(0.5, "fallback")}, scores, time.monotonic() + 30)
    [found] = scores
    assert ("fallback", Usage(2, 0, 0, 2)) == (found.status, found.usage)


async def test_substitutes_in_time() -> None:
    """Substitutes are made off the loop, and what is not ready when the call ends stays failed."""
    slow = Slow()
    scores = [Score.failed("gone") for _ in range(20)]
    await fall_back("slow", dict.fromkeys(range(20), slow), scores, time.monotonic() + 0.1)  # expires
    slow.released.set()
    assert {"failed"} == {one.status for one in scores}
    await fall_back("slow", dict.fromkeys(range(20), slow), scores, time.monotonic() + 30)
    assert {"fallback"} == {one.status for one in scores}
    assert slow.threads and threading.current_thread() not in slow.threads
