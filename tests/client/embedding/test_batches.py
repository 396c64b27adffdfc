"""Work is not done twice, and goes out in full batches that the server can take."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rewardstack import Request, Score, acompute_score, ascore, errors, score
from rewardstack.core.event_loop import loop_thread
from rewardstack.score import Usage
from rewardstack.scorers.embedding.protocol import MAX_TEXT
from tests.client.conftest import Script
from tests.support.servers import FaultServer, Redis
from tests.support.waiters import impatient_and_patient
from tests.support.waiting import eventually

SOURCE = "embedding_remote"

AGAIN = """
    from rewardstack import score
    from tests.client.embedding.test_batches import group
    scores = score(group(1024))
    print({(one.status, one.cached) for one in scores}, repr(sum(one.value for one in scores)))
"""


def group(count: int, label: str = "") -> list[Request]:
    """Samples in groups of eight that share a reference, of different lengths."""
    words = ["word"] * 40
    return [
        Request(SOURCE, f"{label}candidate {at} {' '.join(words[: at % 40])}", f"{label}reference {at // 8}")
        for at in range(count)
    ]


def statuses(scores: list[Score]) -> set[str]:
    """The different statuses."""
    return {one.status for one in scores}


def test_cost(server: FaultServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A batch says what its requests were, once; past the run's budget it is an error, not the substitute, unless the
    call says so."""
    monkeypatch.setenv("REWARDSTACK_MAX_REQUESTS", "2")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "embedding")
    with caplog.at_level(logging.INFO):
        assert Usage(2, 0, 0, 2) == Usage.total(one.usage for one in score(group(56)))
    assert "embedding: 56 samples in " in caplog.text
    assert "2 requests, tokens unknown" in caplog.text
    with pytest.raises(errors.BudgetError, match="has used 2 of 2 requests"):
        score(group(8, "other"))
    assert "falling back" not in caplog.text
    monkeypatch.setenv("REWARDSTACK_MAX_REQUESTS", "3")
    with pytest.raises(errors.BudgetError) as refused:
        score(group(56, "half"))
    assert Usage(1, 0, 0, 1) == Usage.total(one.usage for one in refused.value.scores)
    assert {"fallback"} == statuses(score(group(8, "other"), on_error="lexical"))
    assert {"ok"} == statuses(score(group(56)))


def test_each_text_once_in_full_batches(server: FaultServer) -> None:
    """Of 1,024 samples in groups of eight the server sees 1,152 texts, each once, in 36 full batches by length."""
    assert {"ok"} == statuses(score(group(1024)))
    stats = server.stats()
    assert (1152, []) == (stats["texts"], stats["twice"])
    assert [32] * 36 == [len(batch) for batch in stats["batches"]]
    assert all(batch == sorted(batch) for batch in stats["batches"])
    spans = sorted((batch[0], batch[-1]) for batch in stats["batches"])
    assert all(last <= first for (_, last), (first, _) in itertools.pairwise(spans))


def test_info_is_asked_once(server: FaultServer) -> None:
    """What the server says of itself is asked once for all calls."""
    for label in "abc":
        score(group(16, label))
    assert 1 == server.stats()["info"]


def test_none_in_a_new_process(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """A new process reads from Redis what another computed, to the last bit, and asks for no text."""
    first = sum(one.value or 0.0 for one in score(group(1024)))
    texts = server.stats()["texts"]
    assert f"{{('ok', True)}} {first!r}" == run_script(AGAIN)
    assert texts == server.stats()["texts"]


def test_vectors_outlive_scores(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """Another penalty is another score of the same vectors: those come from Redis, and the similarity is the same."""
    cold = [one.value for one in score(group(64))]
    texts = server.stats()["texts"]
    script = """
        from rewardstack import score
        from tests.client.embedding.test_batches import group
        requests = group(64)
        for one in requests:
            one.extra_info = {"length_penalty": "ratio"}
        scores = score(requests)
        print([one.parts["similarity"] for one in scores], {one.cached for one in scores})
    """
    assert f"{cold!r} {{False}}" == run_script(script)
    assert texts == server.stats()["texts"]


async def test_concurrent_calls_share_vectors(server: FaultServer) -> None:
    """Concurrent calls share each other's texts, both references and candidates."""
    server.set(delay=0.3)
    extras: list[dict[str, Any]] = [{}, {"length_penalty": "ratio"}, {"length_penalty": "sqrt"}]

    async def call(extra: dict[str, Any]) -> list[Score]:
        requests = group(64)
        for one in requests:
            one.extra_info = extra
        return await ascore(requests)

    found = await asyncio.gather(*map(call, extras))
    assert [{"ok"}] * 3 == list(map(statuses, found))
    assert (72, []) == (server.stats()["texts"], server.stats()["twice"])


async def test_single_calls_go_out_together(server: FaultServer) -> None:
    """A trainer that scores one sample a call, many at a time, does not pay a request for each."""
    await acompute_score(SOURCE, "first", "of all")
    requests = group(64)
    released = threading.Event()
    loop_thread().loop.call_soon_threadsafe(released.wait)  # however slow the machine, the calls arrive together
    calls = asyncio.gather(*(acompute_score(one.data_source, one.solution_str, one.ground_truth) for one in requests))
    await asyncio.sleep(0)
    released.set()
    assert 64 == len(await calls)
    assert [] == server.stats()["twice"]
    assert server.stats()["requests"] < 16


def test_own_limit_of_the_server(server: FaultServer) -> None:
    """The batch is as large as the server says, and no more batches are sent at first than it works at."""
    server.set(info={"model_id": "m", "max_client_batch_size": 10, "max_concurrent_requests": 40}, mode="hold")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(score, group(64))
        eventually(lambda: server.stats().get("at_work") == 40)
        time.sleep(0.3)
        assert 40 == server.stats()["most_at_work"]
        server.set(mode="ok")
        assert {"ok"} == statuses(running.result())
    assert [2] + [10] * 7 == sorted(len(batch) for batch in server.stats()["batches"])


def test_overload_is_waited_out(server: FaultServer) -> None:
    """A server with fewer permits than it says refuses requests with 429; they are sent again, and none is lost."""
    server.set(permits=96, mode="hold")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(score, group(512))
        eventually(lambda: server.stats().get("refused", 0) > 0)
        server.set(mode="ok", delay=0.02)
        assert {"ok"} == statuses(running.result())
    stats = server.stats()
    assert stats["refused"] > 0
    assert [] == stats["twice"]
    assert stats["requests"] < 3 * len(stats["batches"])


def test_too_much_is_split(server: FaultServer) -> None:
    """A batch that is refused as too much is halved until it is not."""
    server.set(most=10)
    assert {"ok"} == statuses(score(group(64)))
    assert [] == server.stats()["twice"]
    assert 5 <= max(len(batch) for batch in server.stats()["batches"]) <= 10


def test_refused_texts(server: FaultServer) -> None:
    """A text that is refused by itself is its own sample's affair, whichever batch it stood in."""
    requests = group(32)
    requests[3].solution_str = "REFUSED response"
    requests[9].ground_truth = "REFUSED reference"
    requests[17].ground_truth = ["REFUSED reference", "a fine one"]
    found = score(requests, on_error="lexical")
    assert {3: "unscored", 9: "unscored"} == {at: one.status for at, one in enumerate(found) if one.status != "ok"}
    assert "the server refuses the response" in found[3].reason
    assert "the server refuses the reference" in found[9].reason


def test_cache_disabled(server: FaultServer, redis: Redis) -> None:
    """Without a cache nothing is read or kept, and a batch still asks for each of its texts once."""
    requests = group(16)
    for one in requests:
        one.extra_info = {"cache_enabled": False}
    for _ in range(2):
        assert {("ok", False)} == {(one.status, one.cached) for one in score(requests)}
    assert 36 == server.stats()["texts"]


@pytest.mark.parametrize(("size", "texts"), [(100, 18), (0, 36)])
def test_cache_size(size: int, texts: int, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many vectors stay in this process, and none where the size is 0."""
    monkeypatch.setenv("REWARD_CACHE_ITEMS", "0")
    requests = group(16)
    for one in requests:
        one.extra_info = {"cache_size": size}
    for _ in range(2):
        assert {"ok"} == statuses(score(requests))
    assert texts == server.stats()["texts"]


def test_another_model_is_another_key(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """When the server's model changes, neither scores nor vectors of the one before are read."""
    score(group(1024))
    server.set(info={"model_id": "stand-in", "model_sha": "2"})
    assert run_script(AGAIN).startswith("{('ok', False)}")
    assert 2 * 1152 == server.stats()["texts"]


def test_many_made_up_models(server: FaultServer) -> None:
    """Samples of many different models in one batch are all scored, each by its own."""
    requests = [Request(SOURCE, "a", "b", {"model": f"model {at}"}) for at in range(100)]
    assert {"ok"} == statuses(score(requests))
    assert 200 == server.stats()["texts"]


def test_each_caller_has_its_own_timeout(server: FaultServer) -> None:
    """Of two callers that wait for the same texts, the one with the longer timeout gets the score."""
    score([Request(SOURCE, "first", "of all")])
    server.set(mode="hold")
    assert ("fallback", "ok") == impatient_and_patient(SOURCE, release=lambda: server.set(mode="ok"))


LARGE = {
    "ascii": "word " * 600_000,
    "chinese": "\u4e2d" * 900_000,
    "control": "a\x01" * 900_000,
    "emoji": "\U0001f600" * 600_000,
}


LARGE_BODIES = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


@LARGE_BODIES
@pytest.mark.parametrize("kind", LARGE)
def test_larger_than_a_body(server: FaultServer, kind: str) -> None:
    """A text beyond what the server takes of a body is cut here where it may be, and costs no other its score."""
    requests = [Request(SOURCE, f"a {LARGE[kind]}", "a reference"), *group(4)]
    assert {"ok"} == statuses(score(requests, on_error="none"))
    assert max(map(max, server.stats()["batches"])) == MAX_TEXT


@LARGE_BODIES
def test_larger_than_a_body_and_whole(server: FaultServer) -> None:
    """Where it may not be cut the server's refusal leaves it unscored; it is never compared by its characters."""
    requests = [Request(SOURCE, LARGE["ascii"], "a", {"truncate": False}), *group(4)]
    first, *others = score(requests)
    assert "unscored" == first.status and "the server refuses the response" in first.reason
    assert {"ok"} == statuses(others)


def test_half_a_surrogate_pair(server: FaultServer) -> None:
    """Half a surrogate pair is sent as a question mark, as to a judge."""
    assert {"ok"} == statuses(score([Request(SOURCE, "broken \ud800 pair", "broken ? pair")]))
    assert ["broken ? pair"] == server.stats()["twice"]
