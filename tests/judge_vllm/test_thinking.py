"""Thinking, with and without a reasoning parser, and templates that know of it or do not."""

from __future__ import annotations

import pytest

from rewardstack.scorers.judge.verdict import UNREADABLE
from tests.judge_vllm.conftest import RIGHT, judge, post
from tests.support.vllm import VllmServer

SHORT = {"max_new_tokens": 16, "thinking_budget": 16}


@pytest.mark.parametrize("template", ["default", "binary", "points"])
def test_parser_keeps_the_structure(template: str, qwen3_like: VllmServer) -> None:
    """Behind a reasoning parser a short template's reply keeps its form, for `enable_thinking` is always sent."""
    one = judge(RIGHT, prompt_template=template, server_url=qwen3_like.url, temperature=2.0, top_p=1.0)

    assert one.status == "ok", one.reason


def test_hazard_is_real(qwen3_like: VllmServer) -> None:
    """This is what silence about thinking would cost: the form is dropped without a word."""
    message = {"role": "user", "content": "Say hello."}
    asked = {"messages": [message], "max_tokens": 16, "structured_outputs": {"regex": "REWARD: [01]"}}
    [loud], [silent] = (
        post(qwen3_like, "/v1/chat/completions", **asked, chat_template_kwargs={"enable_thinking": thinks})["choices"]
        for thinks in (False, True)
    )

    assert loud["message"]["content"] in ("REWARD: 0", "REWARD: 1")
    assert silent["message"]["content"] not in ("REWARD: 0", "REWARD: 1")


def test_thinking_without_end(qwen3_like: VllmServer) -> None:
    """Nothing but reasoning is `failed`, and the reason says what to raise."""
    one = judge(RIGHT, server_url=qwen3_like.url, enable_thinking=True, **SHORT)

    assert one.status == "failed"
    assert one.reason.startswith(UNREADABLE) and "reasoning" in one.reason


def test_thinking_of_a_model_that_cannot() -> None:
    """Where the template knows no thinking and no parser stands behind, a reply that was cut is no verdict."""
    one = judge(RIGHT, enable_thinking=True, **SHORT)

    assert one.status == "failed"
    assert one.reason.startswith(UNREADABLE)


def test_labels_behind_a_parser(qwen3_like: VllmServer) -> None:
    """Labels are read the same behind a reasoning parser."""
    one = judge(RIGHT, server_url=qwen3_like.url, verdict="logprob", label_mass_floor=0)

    assert one.status == "ok"
