"""Reward models on a real vLLM, against Hugging Face's forward pass of the same weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client, register_reward_model, score
from rewardstack.errors import ConfigError
from rewardstack.settings import DEFAULTS
from services.judge.model import Model
from tests.reward_model_vllm.tiny_models import ANSWERS, QUESTION, STEPS, TAG
from tests.support.vllm import VllmServer, make_reward_models, running

PROMPT = {"prompt": [QUESTION]}
PRECISION = 1e-4


@pytest.fixture(scope="module")
def tiny(needs_model: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the models."""
    return make_reward_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own, and no routes of other tests."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_registered", {})


def serving(folder: Path, log: Path, *flags: str) -> Any:
    """A vLLM that serves one of the models as a pooling model."""
    return running(log, "--runner", "pooling", *flags, model=Model(str(folder), "rm", is_local=True))


@pytest.fixture(scope="module")
def one_label(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """A reward model with one output."""
    with serving(tiny / "one-label", tmp_path_factory.mktemp("one") / "log") as server:
        yield server


def requests(source: str, answers: list[str]) -> list[Request]:
    return [Request(source, answer, None, PROMPT) for answer in answers]


def test_equals_hugging_face(one_label: VllmServer, tiny: Path) -> None:
    """Raw logits are those of the forward pass, one by one and 512 at a time."""
    register_reward_model("rm", {"base_url": one_label.url, "floor": -100})
    [*expected] = json.loads((tiny / "expected.json").read_text())["one-label"]
    single = [score(requests("rm", [answer]))[0].value for answer in ANSWERS]
    many = [one.value for one in score(requests("rm", ANSWERS * 128))]
    for found in (single, *(many[at : at + len(ANSWERS)] for at in range(0, 512, len(ANSWERS)))):
        assert found == pytest.approx([logit for [logit] in expected], abs=PRECISION)


def test_limits(one_label: VllmServer) -> None:
    """A response beyond the context has the floor and ends no batch; a blank one is scored; a wrong model fails."""
    register_reward_model("rm", {"base_url": one_label.url, "floor": -100})
    register_reward_model("other", {"base_url": one_label.url, "floor": -100, "model": "other"})
    long, short, blank = score(requests("rm", ["word " * 2000, "It is 42.", ""]))
    assert (long.value, long.status) == (-100.0, "ok")
    assert "longer than" in long.reason
    assert short.status == blank.status == "ok"
    assert blank.value not in (0.0, -100.0)
    [one] = score(requests("other", ["It is 42."]), on_error="none")
    assert (one.value, one.status) == (None, "failed")
    assert "to one of: rm" in one.reason


def test_two_labels(tiny: Path, tmp_path: Path) -> None:
    """A model with two outputs needs weights, and is their weighted sum."""
    with serving(tiny / "two-labels", tmp_path / "log") as server:
        register_reward_model("bare", {"base_url": server.url, "floor": -100})
        register_reward_model("rm", {"base_url": server.url, "floor": -100, "outputs": [-1, 1]})
        with pytest.raises(ConfigError, match="has 2 outputs"):
            score(requests("bare", ["It is 42."]))
        expected = json.loads((tiny / "expected.json").read_text())["two-labels"]
        found = [one.value for one in score(requests("rm", ANSWERS))]
        assert found == pytest.approx([good - bad for bad, good in expected], abs=PRECISION)


def test_steps(tiny: Path, tmp_path: Path) -> None:
    """A process reward model says a probability for each step, and the least of them is the value."""
    tokenizer = json.loads((tiny / "steps/tokenizer.json").read_text())
    [tag] = [one["id"] for one in tokenizer["added_tokens"] if one["content"] == TAG]
    pooler = json.dumps({"tok_pooling_type": "STEP", "step_tag_id": tag})
    with serving(tiny / "steps", tmp_path / "log", "--pooler-config", pooler) as server:
        register_reward_model("prm", {"base_url": server.url, "steps": {"tag": TAG}})
        [one, none] = score(requests("prm", ["\n\n".join(STEPS), "  "]))
        assert one.parts is not None
        assert ["step_1", "step_2"] == [*one.parts]
        assert one.value == min(one.parts.values())
        assert 0 < one.value < 1
        assert (0.0, "the response has no steps") == (none.value, none.reason)
