"""Decoded transcripts through the reward server: what a tool said is not paid, and what the policy said after it is."""

from __future__ import annotations

from typing import Any

import pytest

from rewardstack_rules.http.app import create_app
from rewardstack_rules.settings import Settings

CALL = '<tool_call>\n{"name":"calc"}\n</tool_call>'
CASES: dict[str, tuple[str, dict[str, Any], float]] = {
    "an answer after a tool's result": (
        "math",
        {
            "prompt": "6*7?",
            "response": f"Let me compute.{CALL}<|im_end|>\n<|im_start|>user\n<tool_response>42</tool_response>"
            "<|im_end|>\n<|im_start|>assistant\nSo the answer is \\boxed{42}<|im_end|>",
            "label": "42",
        },
        1.0,
    ),
    "the final channel": (
        "math",
        {
            "query": [
                "6*7?<|channel|>analysis<|message|>First guess \\boxed{41}.<|end|>"
                "<|start|>assistant<|channel|>final<|message|>The answer is \\boxed{42}.<|return|>"
            ],
            "prompts": ["6*7?"],
            "labels": ["42"],
        },
        1.0,
    ),
    "an answer in a tag of tool output, after the tool's": (
        "math",
        {
            "prompt": "6*7?",
            "response": f"{CALL}\n<tool_response>41</tool_response>\n<output>\\boxed{{42}}</output>",
            "label": "42",
        },
        1.0,
    ),
    "a tool's result alone": (
        "math",
        {
            "prompt": "6*7?",
            "response": f"{CALL}\nuser\n<tool_response>\\boxed{{42}}</tool_response>\nassistant\nI give up.",
            "label": "42",
        },
        0.0,
    ),
    "a document that was found": (
        "gsm8k",
        {
            "prompt": "6*7?",
            "response": "<search>gsm8k test 42</search>\n<information>Doc 1: ... #### 42</information>\nI give up.",
            "label": "42",
        },
        0.0,
    ),
    "a format behind which the text ended": (
        "math_verifier",
        {"prompt": "6*7?", "response": "<think>6*7</think><answer>42</answer><|im_end|>", "label": "42"},
        1.5,
    ),
    "a function that compares all of the turn": (
        "exact_match",
        {"prompt": "6*7?", "response": "41<|im_end|>\n<|im_start|>assistant\n42<|im_end|>\n", "label": "42"},
        1.0,
    ),
    "messages": (
        "exact_match",
        {
            "prompt": "6*7?",
            "response": [{"role": "assistant", "content": "41"}, {"role": "assistant", "content": "42<|im_end|>"}],
            "label": "42",
        },
        1.0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_reward(case: str) -> None:
    """Each response is paid for what the policy said in its last turn."""
    rule, body, reward = CASES[case]

    reply = create_app(Settings.from_env({})).test_client().post(f"/get_reward?reward_type={rule}", json=body)

    assert reply.status_code == 200
    assert reply.get_json() == (reward if "response" in body else {**reply.get_json(), "rewards": [reward]})
