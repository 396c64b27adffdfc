"""What a verdict is remembered under: all that determines it; a stochastic one within a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewardstack import score
from rewardstack.score import Item
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge import plan
from rewardstack.scorers.judge.dialect import UNKNOWN
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.options import read_options
from rewardstack.scorers.names import JUDGE_OPTIONS
from rewardstack.transport import timing
from tests.client.conftest import Script
from tests.client.judge.conftest import asked, sample
from tests.support.servers import FaultServer, Redis

CASES = Path(__file__).parents[2] / "cases"
BASE: dict[str, Any] = {"temperature": 0, "problem": "p"}
RUBRIC: list[dict[str, Any]] = [{"criterion": "Is polite", "points": 2}, {"criterion": "Is rude", "points": -2}]
TRACE = [
    {"role": "user", "content": "p"},
    {"role": "system", "content": "Be brief."},
    {"role": "assistant", "content": "<think>Hm.</think>I look.", "tool_calls": [{"function": {"name": "look"}}]},
    {"role": "tool", "content": "It is there."},
]
CHANGES: dict[str, dict[str, Any]] = {
    "problem": {"problem": "q"},
    "model": {"model": "other"},
    "temperature": {"temperature": 0.5, "seed": 1},
    "top_p": {"top_p": 0.5},
    "seed": {"seed": 1},
    "max_new_tokens": {"max_new_tokens": 100},
    "omitted fields": {"omit": ["top_p"]},
    "enable_thinking": {"enable_thinking": True},
    "template": {"prompt_template": "binary"},
    "own template": {"prompt_template": "{CANDIDATE_SOLUTION} REWARD:"},
    "another own template": {"prompt_template": "{CANDIDATE_SOLUTION} Now REWARD:"},
    "scale": {"prompt_template": "{CANDIDATE_SOLUTION} REWARD: 0-100"},
    "another scale": {"prompt_template": "{CANDIDATE_SOLUTION} REWARD:", "score_range": [0, 100]},
    "a scale from 1": {"prompt_template": "{CANDIDATE_SOLUTION} REWARD:", "score_range": [0.5, 1]},
    "system prompt": {"system_prompt": "Be kind. {CLOSING}"},
    "no system prompt": {"system_prompt": ""},
    "rubric": {"verdict": "rubric", "rubrics": RUBRIC},
    "another rubric": {"verdict": "rubric", "rubrics": [*RUBRIC, "Ends with a joke"]},
    "other points": {"verdict": "rubric", "rubrics": [{**RUBRIC[0], "points": 1}, RUBRIC[1]]},
    "criteria in parts": {"verdict": "rubric", "rubrics": RUBRIC, "max_criteria": 1},
    "view": {"view": "full_trace", "messages": TRACE},
    "reasoning": {"hide_reasoning": False},
    "reasoning in a trace": {"view": "full_trace", "messages": TRACE, "hide_reasoning": False},
    "a conversation": {"problem": TRACE[:2]},
    "an image": {"images": [f"data:image/png;base64,{'A' * 8}"]},
    "another image": {"images": [f"data:image/png;base64,{'B' * 8}"]},
    "votes": {"num_samples": 3, "temperature": 0.5, "seed": 1},
    "aggregate": {"num_samples": 3, "temperature": 0.5, "seed": 1, "aggregate": "median"},
    "labels": {"verdict": "logprob"},
    "own labels": {"verdict": "logprob", "labels": {"9": 0.5, "8": 0.0}},
    "thinking budget": {"enable_thinking": True, "thinking_budget": 64},
    "floor": {"verdict": "logprob", "label_mass_floor": 0.1},
}


UNCHANGED = {
    "model_name": "stands for model",
    "max_tokens": "stands for max_new_tokens",
    "prompt_template_path": "read into prompt_template",
    "batch_size": "says how many are sent at a time",
    "clip_negative": "for judges by name: tests/client/judge/test_rubric.py",
}
"""Options that have no change of their own above, and why."""


def test_every_option_is_changed() -> None:
    """A new option is tried here, or said to change no verdict."""
    changed = {name for change in CHANGES.values() for name in change}
    assert set(JUDGE_OPTIONS) <= changed | UNCHANGED.keys()


def cached(**extra: Any) -> bool:
    """Whether the verdict on a sample is remembered."""
    (one,) = score([sample("<think>Hm.</think>the same", **{**BASE, **extra})])
    assert "ok" == one.status, one.reason
    return one.cached


def test_every_option_counts(judge: FaultServer) -> None:
    """No option's verdict is taken for another's, and each is remembered."""
    models = [{"id": "small", "root": "/m"}, {"id": "other", "root": "/o"}]
    judge.set(models=models, chances={"9": 0.9}, met=["polite"])
    everything = [{"model": "small", **change} for change in ({}, *CHANGES.values())]
    assert [False] * len(everything) == [cached(**extra) for extra in everything]
    assert [True] * len(everything) == [cached(**extra) for extra in everything]


def test_texts_count(judge: FaultServer) -> None:
    """Candidate and references are part of it, and where one ends and another begins."""
    pairs: list[tuple[str, list[str]]] = [
        ("a", ["b"]),
        ("a", ["b", "c"]),
        ("a", ["c", "b"]),
        ("a", ["bc"]),
        ("ab", ["c"]),
    ]
    samples = [sample(solution, references, temperature=0) for solution, references in pairs]
    assert [False] * 5 == [one.cached for one in score(samples)]
    assert [True] * 5 == [one.cached for one in score(samples)]


@pytest.mark.parametrize("extra", [{"timeout": 50.0}, {"batch_size": 5}, {"unknown": 1}])
def test_what_does_not_count(judge: FaultServer, extra: dict[str, Any]) -> None:
    """How long and where to ask, and what the judge does not read, change no verdict."""
    assert not cached()
    assert cached(**extra)


def renew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call ask the judge again what it serves, and wait for the answer."""
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    monkeypatch.setattr(timing, "OPTIONAL_WAIT", 60.0)
    monkeypatch.setattr(timing, "OPTIONAL_WAIT_SHARE", 0.9)


@pytest.mark.parametrize("what", ["root", "revision"])
def test_another_judge(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A model made of something else under the same name, or a new revision, has verdicts of its own."""
    assert [False, True] == [cached(), cached()]
    if what == "root":
        judge.set(models=[{"id": "small", "root": "/models/finetuned"}])
        renew(monkeypatch)
    else:
        monkeypatch.setenv("JUDGE_REVISION", "2")
    assert not cached()


@pytest.mark.parametrize("variable", ["on", "off"])
def test_another_model_without_cache(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """A judge whose only model has another name now is asked for that one, also where nothing is kept."""
    monkeypatch.setenv("REWARD_CACHE", variable)
    score([sample("one", cache_enabled=False)])
    judge.set(models=[{"id": "other", "root": "/models/other"}])
    renew(monkeypatch)
    score([sample("two", cache_enabled=False)])
    assert ["small", "other"] == [body["model"] for body in asked(judge)]


def test_failures_are_not_remembered(judge: FaultServer) -> None:
    """What failed is asked for again."""
    judge.set(content="no")
    assert "failed" == score([sample("<think>Hm.</think>the same", **BASE)])[0].status
    judge.set(content="REWARD: 0.500")
    assert not cached()


def test_run(redis: Redis, judge: FaultServer, run_script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deterministic verdict is remembered across processes, a stochastic one within a run, or else a process."""
    script = """
        from rewardstack import Request, score
        from rewardstack.cache import link, writer
        from rewardstack.core import event_loop
        from rewardstack.transport import timing
        timing.MIN_STUCK = link.TIMEOUT = writer.FLUSH_TIMEOUT = event_loop.CLOSING_TIME = 60.0
        extras = [{"temperature": 0}, {"temperature": 0.5, "seed": 1}, {"temperature": 0.5}]
        samples = [Request("llm_judge_remote", "a", "b", {"problem": "p", **extra}) for extra in extras]
        print([one.cached for one in score(samples)], [one.cached for one in score(samples)])
    """
    fresh, kept = str([False] * 3), str([True] * 3)
    assert f"{fresh} {kept}" == run_script(script)
    assert f"{[True, True, False]} {kept}" == run_script(script)
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "run-1")
    assert f"{[True, True, False]} {kept}" == run_script(script)
    assert f"{kept} {kept}" == run_script(script)
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "run-2")
    assert f"{[True, True, False]} {kept}" == run_script(script)
    assert 6 == len(asked(judge))


def test_label_mass_is_remembered(judge: FaultServer) -> None:
    """A cached verdict tells the label mass as the fresh one did."""
    judge.set(chances={"9": 0.75})
    first, second = (score([sample("x", verdict="logprob")])[0] for _ in range(2))
    assert (False, True) == (first.cached, second.cached)
    assert first.label_mass == second.label_mass == pytest.approx(0.75, abs=1e-6)


def test_cases_are_valid_json() -> None:
    """The suites of this package can be read by other tools."""
    for name in ("judge_replies", "judge_options", "judge_control_tokens", "judge_keys", "judge_servers"):
        assert json.loads((CASES / f"{name}.json").read_text())


@pytest.mark.parametrize("case", json.loads((CASES / "judge_keys.json").read_text()))
def test_keys_stay(monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]) -> None:
    """What is asked of a vLLM has the same key from one version to the next, but for its source; others have others."""
    monkeypatch.setattr(plan, "_source_hash", lambda: "sources")
    plan._key_prefix.cache_clear()
    item = Item("It is 42.", ("42",), {"problem": "What is 6 times 7?", **case["extra_info"]})
    asked_of = plan.make_plan(item, read_options(item.extra), Destination(("http://j:8000",), ""))
    known, unknown = Model("small", "/models/small"), Model("small", "/models/small", UNKNOWN)
    keys = [plan.cache_key(asked_of, model, "r1", "run") for model in (known, unknown)]
    plan._key_prefix.cache_clear()
    assert all(keys) and [case["key"]] == [key.text for key in keys[:1] if key]
    free = case["extra_info"].get("prompt_template") == "detailed" or case["extra_info"].get("verdict") == "logprob"
    assert free or keys[0] != keys[1]


def test_gone_for_long(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remembered verdict is read long before its deadline while the judge hangs that said long ago what it serves."""
    assert not cached(timeout=3600)
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    monkeypatch.setattr(timing, "OPTIONAL_WAIT", 0.2)  # expires
    judge.freeze()
    try:
        assert cached(timeout=3600)
    finally:
        judge.thaw()
