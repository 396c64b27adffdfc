"""What a score says, and what reaches the trainer for each kind of outcome."""

from __future__ import annotations

import asyncio
import gc
import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, acompute_score, compute_score, score
from rewardstack.cache.key import Key
from rewardstack.cache.store import ResultCache
from rewardstack.core.batching import BatchKey
from rewardstack.errors import (
    ConfigError,
    OverloadError,
    RejectedError,
    RequestError,
    RewardstackError,
    ScoringError,
    UnknownSourceError,
)
from rewardstack.pipeline.pipeline import Pipeline
from rewardstack.pipeline.scorer import Scorer
from rewardstack.routing.routes import RouteTable, builtin_routes
from rewardstack.score import STATUSES, Item
from rewardstack.settings import Settings
from rewardstack.transport import timing
from tests.support.scoring import pipeline_of, scored
from tests.support.servers import FaultServer

KEYS = {"score", "acc", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"}
OUTCOMES = [
    Score(1.0, source="rule:gsm8k", cached=True),
    Score(0.7, "fallback", "lexical", latency_ms=3.5),
    Score.unscored("no reference").with_value(0.0),
    Score.failed("no server").with_value(0.0),
    Score(0.4, label_mass=0.9, parts={"gsm8k": 1.0}),
]
UNSCORED = [
    (
        Request("math", "a", {"answer": "1"}),
        "ground_truth: expected a string, a list of strings or {'target': …}: "
        "an object needs the field 'target', but this object has 'answer'; put the reference into 'target', or pass it "
        "without an object",
    ),
    (Request("math", None, "1"), "solution_str: missing; expected the response as a string or chat messages"),
    (Request("math", 7, "1"), "solution_str: expected a string or chat messages, got int"),
    (Request("math", "a", "1", ["x"]), "extra_info: expected an object, got list"),  # type: ignore[arg-type]
    (
        Request("math", "a", "1", {"timeout": 0}),
        "extra_info.timeout: expected seconds above 0 and at most 86400, got 0",
    ),
    (
        Request("math", "a", "1", {"timeout": "5"}),
        "extra_info.timeout: expected seconds above 0 and at most 86400, got '5'",
    ),
    (
        Request("math", "a", "1", {"timeout": True}),
        "extra_info.timeout: expected seconds above 0 and at most 86400, got True",
    ),
    (Request("math", "a", "1", {"cache_enabled": 0}), "extra_info.cache_enabled: expected true or false, got 0"),
    (Request("math", "a", "1", {"cache_enabled": "no"}), "extra_info.cache_enabled: expected true or false, got 'no'"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.status)
def test_details(outcome: Score) -> None:
    """Every outcome has the same keys with numbers in them, and exactly one status is 1."""
    details = outcome.details
    assert KEYS == details.keys()
    assert {True} == {type(value) in (int, float) for value in details.values()}
    assert {status: float(status == outcome.status) for status in STATUSES} == {
        name: details[name] for name in STATUSES
    }


def test_with_value() -> None:
    """A substitute changes the value and nothing else."""
    assert Score(0.0, "failed", "no server", "rule:math") == Score.failed("no server", "rule:math").with_value(0.0)


@pytest.mark.parametrize(("request_", "reason"), UNSCORED, ids=lambda case: case if isinstance(case, str) else "")
def test_malformed_sample(server: FaultServer, request_: Request, reason: str) -> None:
    """A sample of the wrong shape is unscored, says which field is to blame, and costs its neighbours nothing."""
    before, bad, after = score([Request("math", "a", "1"), request_, Request("math", "bb", "1")])
    assert (1.0, 2.0) == (before.value, after.value)
    assert (0.0, "unscored", reason) == (bad.value, bad.status, bad.reason)


@pytest.mark.parametrize(
    ("on_error", "values"), [(None, (0.0, 0.0)), ("zero", (0.0, 0.0)), ("lexical", (0.0, 0.0)), ("none", (None, None))]
)
def test_policy(server: FaultServer, on_error: Any, values: tuple[float | None, float | None]) -> None:
    """Failed and unscored samples get the error policy's value and keep their status."""
    server.set(mode="400")
    failed, unscored = score([Request("math", f"under {on_error}", "1"), Request("math", "b", {})], on_error=on_error)
    assert (*values, "failed", "unscored") == (failed.value, unscored.value, failed.status, unscored.status)
    assert "mode 400" in failed.reason


def test_policy_raise(server: FaultServer) -> None:
    """Under `raise` the first sample without a score raises, with the scores of all in the order of the requests."""
    requests = [Request("math", "a", "1"), Request("math", "b", {}), Request("math", "ccc", "1")]
    with pytest.raises(ScoringError, match="^sample 1: unscored: ground_truth: ") as caught:
        score(requests, on_error="raise")
    assert [1.0, None, 3.0] == [one.value for one in caught.value.scores]


def test_rewards_of_a_batch(server: FaultServer) -> None:
    """A trainer gets floats, and under `details` a dict for each sample, with the same keys whatever became of it."""
    samples = {"data_sources": "math", "solution_strs": ["a", "bb"], "ground_truths": ["1", {}]}
    assert [1.0, 0.0] == compute_score(**samples)
    assert [1.0, None] == compute_score(**samples, on_error="none")
    assert [KEYS, KEYS] == [set(details) for details in compute_score(**samples, details=True)]
    assert [(1.0, 1.0, 0.0), (0.0, 0.0, 1.0)] == [
        (details["score"], details["ok"], details["unscored"]) for details in compute_score(**samples, details=True)
    ]


def test_rewards_of_a_server_that_is_gone(server: FaultServer) -> None:
    """With the server gone, the keys under `details` are the same, and the failure is told apart from a score of 0."""
    server.kill()
    details = compute_score("math", "gone", "1", {"timeout": 0.2}, details=True)  # expires
    assert (KEYS, 0.0, 1.0, 0.0) == (set(details), details["score"], details["failed"], details["ok"])


def test_remembered_while_its_server_hangs(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remembered score is read long before its deadline while the server hangs that said long ago what it has."""
    request = Request("math", "remembered", "1", {"timeout": 3600})
    assert not score([request])[0].cached
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    monkeypatch.setattr(timing, "OPTIONAL_WAIT", 0.2)  # expires
    server.freeze()
    try:
        assert score([request])[0].cached
    finally:
        server.thaw()


def test_unknown_source_scores_nothing(server: FaultServer) -> None:
    """One unknown source in a batch is the caller's error: it is raised before anything is sent."""
    with pytest.raises(UnknownSourceError, match="'nope' has no route"):
        score([Request("math", "a", "1"), Request("nope", "b", "1")])
    assert 0 == server.stats()["requests"]


class Parted(Scorer[Item]):
    """A scorer whose scores have parts."""

    source, timeout = "rule:parted", 60.0

    def batch(self, item: Item) -> BatchKey:
        """Eight at a time."""
        return BatchKey(8)

    async def keys(self, items: Any, context: Any) -> list[Key | None]:
        """One key for all."""
        return [Key("parted")] * len(items)

    async def score(self, items: Any, context: Any) -> list[Score]:
        """The same for all."""
        return [Score(1.5, source=self.source, parts={"format": 0.5, "accuracy": 1.0}) for _ in items]


async def test_scores_are_the_callers_own() -> None:
    """What a caller does to its score is not seen by those who share it or get it from the cache."""
    pipeline = pipeline_of(Parted())
    first, neighbour = await scored(pipeline, Item("a"), Item("a"))
    assert first.parts is not None
    first.parts["format"] = first.value = -1.0
    (later,) = await scored(pipeline, Item("a"))
    assert (1.5, {"format": 0.5, "accuracy": 1.0}) == (neighbour.value, neighbour.parts)
    assert (1.5, {"format": 0.5, "accuracy": 1.0}, True) == (later.value, later.parts, later.cached)


async def test_unknown_rule_leaves_no_coroutine() -> None:
    """A batch with a rule that is unknown raises, without a warning about coroutines that nobody awaited."""

    def make(name: str) -> Scorer[Item]:
        if name == "nope":
            raise UnknownSourceError("no reward function is named 'nope'", "data_source")
        return Parted()

    pipeline = Pipeline(RouteTable(builtin_routes()), {"rule": make}, ResultCache(Settings.from_env({})))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(UnknownSourceError, match="'nope'"):
            await pipeline.score([Request("rule_remote_parted", "a"), Request("rule_remote_nope", "b")])
        gc.collect()
    assert [str(one.message) for one in caught] == []


@pytest.mark.parametrize(
    "error",
    [
        ScoringError("sample 0: failed", [Score.failed("no server")]),
        RequestError("timeout: expected seconds above 0", "timeout"),
        OverloadError("busy", 2.0),
        RejectedError("no", 404),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_processes(error: RewardstackError) -> None:
    """Errors keep their message and fields on the way from a worker's process, as Ray sends them."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(error), str(error), vars(error)) == (type(copy), str(copy), vars(copy))


class Waiting(Parted):
    """A scorer that answers when it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def keys(self, items: Any, context: Any) -> list[Key | None]:
        """No score is shared."""
        return [None] * len(items)

    async def score(self, items: Any, context: Any) -> list[Score]:
        """The same for all."""
        await self.released.wait()
        return await super().score(items, context)


async def test_neighbours_do_not_extend_a_deadline() -> None:
    """A caller waits no longer because its sample travels with one whose caller has more time."""
    scorer = Waiting()
    pipeline = pipeline_of(scorer)
    patient = asyncio.create_task(scored(pipeline, Item("a")))
    [late] = await scored(pipeline, Item("b", (), {"timeout": 0.05}))  # expires
    scorer.released.set()
    [found] = await patient
    assert ("failed", "ok") == (late.status, found.status)
    assert late.reason.startswith("no answer within 0.05 s")


@pytest.mark.parametrize("source", ["llm_judge_remote", "gsm9k"])
async def test_errors_of_users_are_short(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing URL or an unknown data_source ends a call with its message, after the call's own frames alone."""
    monkeypatch.delenv("LLM_JUDGE_SERVER_URL", raising=False)
    with pytest.raises(ConfigError) as blocking:
        compute_score(source, "a", "b")
    with pytest.raises(ConfigError) as waiting:
        await acompute_score(source, "a", "b")
    for caught in (blocking, waiting):
        assert [Path(frame.path).name for frame in caught.traceback][1:] == ["api.py", "api.py"]
        assert len("".join(traceback.format_exception(caught.value)).splitlines()) < 15


def test_bugs_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that no message explains has the frames down to where it was raised."""

    async def faulty(*_: Any, **__: Any) -> list[Score]:
        raise ZeroDivisionError

    monkeypatch.setattr(Pipeline, "score", faulty)
    with pytest.raises(ZeroDivisionError) as caught:
        compute_score("gsm8k", "#### 1", "1")
    assert caught.traceback[-1].name == "faulty"
