"""No integration returns NaN or infinity, whatever a service says: a number, None for TRL and Inspect, or an error."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import rewardstack
from rewardstack import embedding_remote, llm_judge_remote, rule_remote
from rewardstack.errors import RewardstackError
from rewardstack.remote_rm_client import RemoteRewardModel
from rewardstack.score import ON_ERROR
from rewardstack.trainers import areal, openrlhf, slime, verifiers, verl
from rewardstack.trainers.columns import Columns
from rewardstack.trainers.ms_swift import reward as swift_reward
from rewardstack.trainers.trl import reward_func
from rewardstack.transport import timing
from tests.cli.scripted_server import Answer, scripted_server
from tests.support.servers import FaultServer, free_port
from tests.support.table import Table

NAN, INFINITE = float("nan"), float("inf")
REPLIES: dict[str, dict[str, Any]] = {
    "failed": {"value": None, "status": "failed", "reason": "away"},
    "unscored": {"value": None, "status": "unscored", "reason": "no reference"},
    "NaN": {"value": NAN},
    "infinite": {"value": INFINITE},
    "minus infinity": {"value": -INFINITE},
    "text": {"value": "nan"},
    "NaN and failed": {"value": NAN, "status": "failed", "reason": "away"},
    "a part is NaN": {"details": {"parts": {"accuracy": NAN, "format": INFINITE}}},
    "the label mass is NaN": {"details": {"label_mass": NAN}},
    "ok": {"details": {"parts": {"accuracy": 1.0, "format": 0.5}}},
}
"""Fields of the server's scores."""
ROW: Any = ("gsm8k", "#### 1", "1", {"cache_enabled": False})
EXTRA = {"data_source": "gsm8k", "extra_info": ROW[3]}
SAMPLE = SimpleNamespace(index=1, prompt="p", response="#### 1", label="1", metadata=ROW[3])
TASK: Any = SimpleNamespace(data_source="gsm8k", answer="1", prompt_text="p", extra_info=ROW[3])
TRACE: Any = SimpleNamespace(branches=[], last_reply="#### 1", info={})
RM = SimpleNamespace(rm_type="gsm8k")
Call = Callable[[], Any]


def trl_call(**options: Any) -> Any:
    function: Any = reward_func("gsm8k", extra_info=ROW[3], **options)
    return function(["p"], ["#### 1"], answer=["1"])


def swift_call(on_error: Any) -> Any:
    columns = Columns("gsm8k", None, (), ROW[3], "")
    return swift_reward("r", columns, on_error, None)(["#### 1"], [[{"role": "user", "content": "?"}]])


CALLS: dict[str, Call] = {
    **{f"compute_score, {policy}": partial(rewardstack.compute_score, *ROW, on_error=policy) for policy in ON_ERROR},
    "compute_score, details": lambda: rewardstack.compute_score(*ROW, details=True),
    "rule_remote": lambda: rule_remote.compute_score(*ROW),
    "llm_judge_remote": lambda: llm_judge_remote.compute_score("llm_judge_remote", *ROW[1:]),
    "embedding_remote": lambda: embedding_remote.compute_score("embedding_remote", *ROW[1:]),
    "areal": lambda: areal.reward("p", "#### 1", [], [], answer="1", **EXTRA),
    "ms_swift": lambda: swift_call("raise"),
    "ms_swift, zero": lambda: swift_call("zero"),
    "openrlhf": lambda: openrlhf.reward_func(["p#### 1"], ["p"], ["1"]),
    "slime": lambda: slime.reward(RM, SAMPLE),
    "slime, a group": lambda: slime.reward(RM, [SAMPLE]),
    "trl": trl_call,
    "trl, zero": lambda: trl_call(on_error="zero"),
    "trl, blocking": lambda: trl_call(blocking=True),
    "verifiers": lambda: verifiers.reward(TASK, TRACE),
    "verl": lambda: verl.compute_score(*ROW),
    "verl, parts": lambda: verl.compute_score(*ROW, parts=["accuracy", "format"]),
    "verl, a number": lambda: verl.compute_score(*ROW, details=False),
    "verl, sync": lambda: verl.compute_score_sync(*ROW),
    "verl, batch": lambda: verl.compute_score_batched(*([one] for one in ROW)),
}  # fmt: skip


def numbers(value: Any) -> Iterator[float]:
    """The numbers in what a trainer gets."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, (int, float)):
        yield value
    elif value is not None and not isinstance(value, str):
        for one in value:
            yield from numbers(one)


def check(call: Call, may_raise: bool = True) -> None:
    """Assert that a call returns finite numbers and nulls, or raises an error of rewardstack."""
    with suppress(*([RewardstackError] if may_raise else [])):
        outcome = call()
        outcome = asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome
        assert all(math.isfinite(one) for one in numbers(outcome)), outcome


def test_every_integration(
    server: FaultServer, skyrl: Any, inspect_ai: Any, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the server replies, each integration returns finite numbers or None, or raises."""
    for name in ("LLM_JUDGE_SERVER_URL", "EMBEDDING_SERVER_URL"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
        monkeypatch.setenv(name.replace("_URL", "_TIMEOUT"), "1")  # expires
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")

    def environment() -> Any:
        env = skyrl.RewardstackEnv({}, {**EXTRA, "reward_spec": {"ground_truth": "1"}})
        step = env.step("#### 1")
        return step.reward, step.metadata, env.get_metrics()

    async def inspected() -> Any:
        state = SimpleNamespace(input_text="p", output=SimpleNamespace(completion="#### 1"))
        score = await inspect_ai.rewardstack("gsm8k", options=ROW[3])(state, ["1"])
        return score.value, score.metadata

    calls = {**CALLS, "skyrl": environment, "inspect": inspected}
    for reply, said in REPLIES.items():
        server.set(said=said)
        for name, call in calls.items():
            with table.case(f"{name}: {reply}"):
                check(call, may_raise=reply != "ok")


def test_align_anything(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Align-Anything's client, which reads numbers alone, refuses a reply with one that is not finite."""
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    for reply in (b'{"rewards": [NaN]}', b'{"rewards": [1e999]}', b'{"rewards": ["nan"]}', b'{"rewards": [null]}'):
        with table.case(reply.decode()), scripted_server(Answer(reply)) as server:
            check(partial(RemoteRewardModel(f"{server.url}/get_reward").score, ["p"], ["#### 1"]))
