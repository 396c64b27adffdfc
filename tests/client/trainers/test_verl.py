"""The files that verl loads, called as its reward managers call them."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rewardstack import register_route
from rewardstack.errors import RequestError, RewardstackError, ScoringError
from rewardstack.trainers import verl
from tests.support.servers import FaultServer
from tests.support.table import Table

KEYS = {"score", "acc", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"}
ROW: Mapping[str, Any] = {"data_source": "openai/gsm8k", "ground_truth": "1", "extra_info": {"index": 1}}
UNREADABLE = {"no": "target"}
"""A reference that makes a sample `unscored`."""


def both(**arguments: Any) -> Any:
    """What `compute_score` gives, and `compute_score_sync` too, though from a cache perhaps and in another time."""
    awaited, blocking = asyncio.run(verl.compute_score(**arguments)), verl.compute_score_sync(**arguments)
    for one in (awaited, blocking):
        if isinstance(one, dict):
            one["latency_ms"] = one["cached"] = 0.0
    assert awaited == blocking
    return awaited


def test_loaded_by_path(server: FaultServer, tmp_path: Path) -> None:
    """A copy of the file in another directory, loaded by its path alone as verl does, scores by `data_source`."""
    path = tmp_path / "my_rewards.py"
    path.write_text(Path(verl.__file__).read_text())
    spec = importlib.util.spec_from_file_location("custom_module_1", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert 3.0 == module.compute_score_sync(**ROW, solution_str="abc")["score"]
    assert 3.0 == asyncio.run(module.compute_score(**ROW, solution_str="abc"))["score"]


def test_same_keys(server: FaultServer) -> None:
    """A sample that is scored, one without a reference and one that the server fails have the same numeric keys."""
    scored, unscored = both(**ROW, solution_str="abc"), both(**{**ROW, "ground_truth": UNREADABLE}, solution_str="abc")
    server.set(mode="500")
    failed = both(**ROW, solution_str="ab", timeout=0.5)  # expires
    for reward in (scored, unscored, failed):
        assert KEYS == {*reward}
        assert all(isinstance(value, float) for value in reward.values())
    assert (3.0, 1.0) == (scored["score"], scored["ok"])
    assert (0.0, 1.0) == (unscored["score"], unscored["unscored"])
    assert (0.0, 1.0) == (failed["score"], failed["failed"])


def test_verls_own_arguments(server: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """What verl adds where a reward model is on changes nothing; of an argument that is not known a warning tells."""
    assert 3.0 == both(**ROW, solution_str="abc", reward_router_address="a:1", reward_model_tokenizer=object())["score"]
    assert "" == caplog.text
    assert 3.0 == both(**ROW, solution_str="abc", on_eror="raise")["score"]
    assert "reward_kwargs: 'on_eror' is not known and has no effect; did you mean 'on_error'?" in caplog.text


def test_a_number(server: FaultServer) -> None:
    """`details=False` gives the bare number."""
    assert 3.0 == both(**ROW, solution_str="abc", details=False)


def test_configured_options(server: FaultServer) -> None:
    """`options` are those of every sample; what a row says itself precedes them."""
    assert 1 == both(**ROW, solution_str="abc", options={"timeout": -1})["unscored"]
    own = {**ROW, "extra_info": {"timeout": 60}}
    assert 1 == both(**own, solution_str="abc", options={"timeout": -1})["ok"]


def test_null_fields() -> None:
    """A null field of a row, as parquet has it where other rows have one, does not displace a configured option."""
    call = verl.Arguments(options={"prompt_template": "binary", "seed": 1})
    request = call.request("llm_judge_remote", "abc", "1", {"prompt_template": None, "seed": 2, "index": None})
    assert {"prompt_template": "binary", "seed": 2} == request.extra_info


def test_accuracy(server: FaultServer, table: Table) -> None:
    """`acc`, verl's metric of groups and of validation, is the part `acc`, else `accuracy`, else the reward itself."""
    cases = {
        "no parts": ({}, 3.0),
        "other parts": ({"details": {"parts": {"brevity": 0.5}}}, 3.0),
        "accuracy": ({"details": {"parts": {"format": 0.5, "accuracy": 1.0}}}, 1.0),
        "acc of an own function": ({"details": {"parts": {"acc": 0.0, "accuracy": 1.0}}}, 0.0),
        "unscored": ({"value": None, "status": "unscored"}, 0.0),
        "failed": ({"value": None, "status": "failed"}, 0.0),
    }
    for name, (said, accuracy) in cases.items():
        with table.case(name):
            server.set(said=said)
            assert accuracy == both(**ROW, solution_str="abc", parts=["acc"], options={"cache_enabled": False})["acc"]


def test_parts(server: FaultServer) -> None:
    """`parts` names those of a reward that are told as well, as GDPO needs them: 0 without a score, else they are
    there."""
    server.set(said={"details": {"parts": {"format": 0.5, "accuracy": 1.0}}})
    reward = both(**ROW, solution_str="abc", parts=["accuracy", "format"])
    assert KEYS | {"accuracy", "format"} == {*reward}
    assert (1.0, 0.5) == (reward["accuracy"], reward["format"])
    lost = both(**{**ROW, "ground_truth": UNREADABLE}, solution_str="abc", parts=["accuracy"])
    assert (0.0, 1.0) == (lost["accuracy"], lost["unscored"])
    with pytest.raises(RequestError, match="^parts: rule:gsm8k has no part 'akkuracy'; available: format, accuracy"):
        both(**ROW, solution_str="abc", parts=["akkuracy"])


def test_none_is_refused(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """`on_error="none"` is refused before anything is asked, and a route's own where it is met; the error says why."""
    with pytest.raises(RequestError, match="^on_error: none is not supported .*assemble_rm_scores.*use zero"):
        both(**ROW, solution_str="abc", on_error="none")
    assert 0 == server.stats()["requests"]
    monkeypatch.setattr("rewardstack.client._registered", {})
    register_route("hesitant", {"route": "gsm8k", "on_error": "none"})
    with pytest.raises(RequestError, match="on_error = none: .*use zero"):
        both(data_source="hesitant", solution_str="abc", ground_truth=UNREADABLE)
    assert 0.0 == both(data_source="hesitant", solution_str="abc", ground_truth=UNREADABLE, on_error="zero")["score"]


def test_raise(server: FaultServer) -> None:
    """Under `on_error="raise"` a sample without a score raises, and those that were asked for with it do not."""

    async def batch() -> list[Any]:
        calls = [verl.compute_score("gsm8k", "abc", truth, {}, on_error="raise") for truth in ("1", UNREADABLE, "1")]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = asyncio.run(batch())
    assert 3.0 == first["score"] == third["score"]
    assert isinstance(second, RewardstackError)


@pytest.mark.parametrize("policy", [None, "raise"], ids=["the route's", "the call's"])
def test_raise_asks_once(policy: Any, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to raise is no reason to score again, be it the sample or its company, whose routes' policies stay."""
    monkeypatch.setattr("rewardstack.client._registered", {})
    register_route("strict", {"route": "gsm8k", "on_error": "raise"})
    server.set(said={"value": None, "status": "failed", "reason": "it is away"})

    async def batch() -> list[Any]:
        rows = [("strict", "a"), ("gsm8k", "ab"), ("strict", "abc")]
        calls = [verl.compute_score(*row, "1", {}, on_error=policy) for row in rows]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, lenient, last = asyncio.run(batch())
    assert ["sample 0: failed: it is away"] * 2 == [str(first), str(last)]
    assert isinstance(first, ScoringError) and isinstance(last, ScoringError)
    assert isinstance(lenient, ScoringError) if policy else (0.0, 1.0) == (lenient["score"], lenient["failed"])
    assert 3 == server.stats()["items"]


def test_raise_in_an_outage(server: FaultServer) -> None:
    """Under `on_error="raise"` each sample that a server fails raises."""
    server.freeze()

    async def batch() -> list[Any]:
        given: Any = {"on_error": "raise", "timeout": 0.8}  # expires
        calls = [verl.compute_score("gsm8k", "a" * at, "1", {}, **given) for at in range(1, 9)]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(batch())
    assert all(isinstance(one, ScoringError) and len(one.scores) == 1 for one in outcomes)


def test_calls_travel_together(server: FaultServer) -> None:
    """What a worker of verl's asks for at once is one request to the reward server."""

    async def batch() -> list[Any]:
        return await asyncio.gather(*(verl.compute_score("gsm8k", "a" * length, "1", {}) for length in range(1, 33)))

    assert [*range(1, 33)] == [reward["score"] for reward in asyncio.run(batch())]
    assert 1 == server.stats()["requests"]


def test_calls_of_older_versions(server: FaultServer) -> None:
    """verl up to 0.7.0 calls by keyword, by position (`prime`, which pickles the function and needs floats), or once
    for a batch."""
    assert (3.0, 1.0) == tuple(verl.compute_score_sync(**ROW, solution_str="abc")[key] for key in ("score", "ok"))  # type: ignore[index]
    prime = functools.partial(pickle.loads(pickle.dumps(verl.compute_score_sync)), details=False)  # noqa: S301
    assert 3.0 == prime("openai/gsm8k", "abc", "1", {"index": 1})
    columns: dict[str, Any] = {"data_sources": ["gsm8k", "math"], "solution_strs": ["a", "bb"]}
    columns |= {"ground_truths": ["1", UNREADABLE], "extra_infos": [{}, None]}
    assert [1.0, 0.0] == verl.compute_score_batched(**columns, details=False)
    detailed: list[Any] = verl.compute_score_batched(**columns)
    assert [1.0, 0.0] == [one["ok"] for one in detailed]
    with pytest.raises(RequestError, match="^on_error: "):
        verl.compute_score_batched(**columns, on_error="none")
