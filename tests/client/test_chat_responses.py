"""A response in chat messages, as conversational trainers hand it over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardstack import Request
from rewardstack.core.wire import sample_record
from rewardstack.errors import RequestError
from rewardstack.pipeline.arguments import read_call
from rewardstack.pipeline.items import read_request

CASES = json.loads((Path(__file__).resolve().parents[1] / "cases" / "chat_responses.json").read_text())


@pytest.mark.parametrize("case", CASES["read"], ids=lambda case: case["name"])
def test_what_the_assistant_says_last(case: dict[str, Any]) -> None:
    """Of messages the assistant's last one is the response: its text, or its parts that are text."""
    item, _ = read_request(Request("gsm8k", case["solution_str"], "42"))

    assert case["text"] == item.solution


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_messages_without_a_response(case: dict[str, Any]) -> None:
    """Messages in which the assistant says nothing last are refused by field, with what is wanted."""
    with pytest.raises(RequestError, match=r"^solution_str: .*whose last assistant message has no text") as raised:
        read_request(Request("gsm8k", case["solution_str"], "42"))

    assert "solution_str" == raised.value.field


def test_read_again() -> None:
    """The server that a response is sent to reads the same last turn from it, even if this looks like tool output."""
    output = "<output>\\boxed{42}</output>"
    call = '<tool_call>{"name": "f"}</tool_call>\n<tool_response>41</tool_response>\n'
    for response in (call + output, [{"role": "assistant", "content": call + output}], output):
        item, _ = read_request(Request("math", response, "42"))
        sent = json.loads(json.dumps(sample_record("math", item, {})))
        again, _ = read_request(Request(**sent))
        assert again.solution == item.solution and item.solution.endswith(output) and again.references == ("42",)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_messages_are_one_response(kind: Any) -> None:
    """Messages in the singular are one sample, not a batch; lists of them are a batch."""
    messages = kind([{"role": "assistant", "content": "#### 42"}])

    assert read_call(("gsm8k", messages, "42", None), (None,) * 4, {}).single
    batch = read_call(("gsm8k", [messages, messages], ["42", "42"], None), (None,) * 4, {})
    assert (2, False) == (len(batch.requests), batch.single)
