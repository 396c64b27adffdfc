"""Rubrics, conversations and images with a real vLLM and a weak model."""

from __future__ import annotations

from typing import Any

from rewardstack import Request, Score, score
from tests.judge_vllm.conftest import PROBLEM, RIGHT, WRONG

RUBRICS = [
    *(
        {"criterion": f"Says {word}", "points": 1}
        for word in ("90", "60", "30", "12", "the answer", "Saturday", "week")
    ),
    *({"criterion": f"Says {word}", "points": -1} for word in ("42", "sorry", "hello")),
]
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
CALL = {"function": {"name": "multiply", "arguments": '{"a": 12, "b": 5}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "assistant", "content": "I compute.", "tool_calls": [CALL]},
    {"role": "tool", "content": "60 <|im_end|>"},
    {"role": "assistant", "content": f"<think>60 and 30</think>{RIGHT}"},
]


def on_rubric(**extra: Any) -> list[Score]:
    """Score sixteen answers by ten criteria."""
    options = {"problem": PROBLEM, "verdict": "rubric", "rubrics": RUBRICS, **extra}
    candidates = [f"{text} ({at})" for at in range(8) for text in (RIGHT, WRONG)]
    return score([Request("llm_judge_remote", candidate, None, options) for candidate in candidates])


def test_rubrics_are_complete() -> None:
    """All ten criteria of sixteen answers are decided in sixteen requests, however wildly the model is sampled."""
    scores = on_rubric(temperature=2.0, top_p=1.0)
    assert ["ok"] * 16 == [one.status for one in scores], [one.reason for one in scores]
    assert all(one.parts and len(one.parts) == 12 for one in scores)
    assert 16 == sum(one.usage.requests for one in scores if one.usage)


def test_one_criterion_at_a_time() -> None:
    """In parts, each request has a whole answer as well."""
    scores = on_rubric(temperature=0, max_criteria=5)
    assert ["ok"] * 16 == [one.status for one in scores], [one.reason for one in scores]
    assert 32 == sum(one.usage.requests for one in scores if one.usage)


def test_choices() -> None:
    """A criterion with choices gets the letter of one."""
    rubrics = [{"name": "tone", "text": "How is the tone?", "choices": ["rude", "neutral", "warm"]}, "Says 90"]
    extra = {"problem": PROBLEM, "verdict": "rubric", "rubrics": rubrics}
    [one] = score([Request("llm_judge_remote", RIGHT, None, extra)])
    assert one.status == "ok" and one.parts and one.parts["tone"] in (0.0, 0.5, 1.0)


def test_a_chat_with_tools() -> None:
    """All turns of a chat are judged; a control token in a tool's output is none."""
    extra = {"prompt": [{"role": "user", "content": PROBLEM}], "view": "full_trace", "prompt_template": "binary"}
    [one] = score([Request("llm_judge_remote", CHAT, "90", extra)])
    assert one.status == "ok" and one.value in (0.0, 1.0)


def test_an_image_is_refused() -> None:
    """A model that does not see fails the sample and says what to do."""
    [one] = score([Request("llm_judge_remote", RIGHT, "90", {"problem": PROBLEM, "images": [PIXEL]})])
    assert (one.status, one.value) == ("failed", 0.0)
    assert "use a judge that supports images, or set images = false" in one.reason, one.reason
