"""Verdicts read from the probabilities of labels."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rewardstack import Request, score
from rewardstack.core.deadline import SharedDeadline
from rewardstack.scorers.judge.templates import LABELS as LABELS_OF
from rewardstack.transport.message import Message
from rewardstack.transport.servers import Servers
from tests.judge_vllm.conftest import PROBLEM, REFERENCE, RIGHT, WRONG, judge, post
from tests.support.vllm import VllmServer

QUESTION = "Does {CANDIDATE_SOLUTION} come to the result of {REFERENCE_SOLUTION}? A for yes, B for no."
LABELS = {"A": 1.0, "B": 0.25}


def test_expected_value(vllm: VllmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score is the labels' expected value, as the model itself rates each label after the same prompt."""
    sent: list[dict[str, Any]] = []
    watch(monkeypatch, sent)
    one = judge(RIGHT, prompt_template=QUESTION, verdict="logprob", labels=LABELS, label_mass_floor=0)
    [chat] = [body for body in sent if "messages" in body]
    chances = [probability(vllm, chat, label) for label in LABELS]

    assert one.status == "ok" and one.value is not None and one.label_mass is not None
    assert one.label_mass == pytest.approx(sum(chances), rel=0.05)
    expected = sum(chance * value for chance, value in zip(chances, LABELS.values(), strict=True)) / sum(chances)
    assert one.value == pytest.approx(expected, abs=0.02)


def watch(monkeypatch: pytest.MonkeyPatch, sent: list[dict[str, Any]]) -> None:
    """Keeps what the client posts."""
    real = Servers.ask

    async def ask_and_keep(self: Servers, message: Message, deadline: SharedDeadline) -> Any:
        if message.body is not None:
            sent.append(json.loads(message.body))
        return await real(self, message, deadline)

    monkeypatch.setattr(Servers, "ask", ask_and_keep)


def probability(vllm: VllmServer, chat: dict[str, Any], label: str) -> float:
    """What the model gives to `label` as the next token, read from its rating of a prompt that ends with it."""
    kwargs = {name: chat[name] for name in ("chat_template_kwargs", "add_generation_prompt", "continue_final_message")}
    prompt = post(vllm, "/tokenize", messages=chat["messages"], **kwargs)["tokens"]
    [token] = post(vllm, "/tokenize", prompt=label, add_special_tokens=False)["tokens"]
    reply = post(vllm, "/v1/completions", prompt=[*prompt, token], max_tokens=1, prompt_logprobs=0)
    return math.exp(reply["choices"][0]["prompt_logprobs"][-1][str(token)]["logprob"])


@pytest.mark.parametrize("template", LABELS_OF)
def test_built_in_labels(template: str) -> None:
    """Nine tenths of what the model may say are the built-in labels, and the same sample gets the same score."""
    extra = {"problem": PROBLEM, "prompt_template": template, "verdict": "logprob"}
    asked = [Request("llm_judge_remote_labels", text, REFERENCE, extra) for text in (RIGHT, WRONG, "90", "No idea.")]
    first, again = score(asked), score(asked)

    assert ["ok"] * len(asked) == [one.status for one in first], [one.reason for one in first]
    assert all(one.label_mass is not None and one.label_mass >= 0.9 for one in first), first
    assert [(one.value, one.label_mass) for one in first] == [(one.value, one.label_mass) for one in again]


def test_floor() -> None:
    """Labels that the model hardly thinks of are no verdict."""
    one = judge(RIGHT, verdict="logprob", label_mass_floor=1.0)

    assert one.status == "failed"
    assert "the total probability of the labels is" in one.reason


def test_labels_of_several_tokens() -> None:
    """A label of several tokens is the caller's fault, and named."""
    one = judge(RIGHT, prompt_template="binary", verdict="logprob", labels={"A": 1, "certainly not": 0})

    assert one.status == "unscored"
    assert "'certainly not' is 3 tokens for SmolLM2-135M-Instruct; choose labels of one token" in one.reason
