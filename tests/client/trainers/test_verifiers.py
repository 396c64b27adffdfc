"""`rewardstack.trainers.verifiers`: which turns of a trace are scored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack import Request
from rewardstack.score import Score
from rewardstack.trainers import verifiers

TASK: Any = SimpleNamespace(prompt_text="Weather?", data_source="agent", answer="7")


def node(sampled: bool, **message: Any) -> Any:
    """A node of a trace; its message is a fake of verifiers' pydantic models."""
    dumped = {name: value for name, value in message.items() if value is not None}
    return SimpleNamespace(sampled=sampled, message=SimpleNamespace(model_dump=lambda **_: dumped))


ASKED = [node(False, role="system", content="Be brief."), node(False, role="user", content="Weather?")]
CALLED = [
    node(True, role="assistant", tool_calls=[{"id": "a", "type": "function", "name": "f", "arguments": "{}"}]),
    node(False, role="tool", tool_call_id="a", content="7"),
]
ANSWERED = node(True, role="assistant", content=" It is 7. ")
OTHER = [*ASKED, node(True, role="assistant", content="A sub-agent.")]
TRACES: dict[str, tuple[list[list[Any]], str, list[str] | str, int]] = {
    "a tool": ([[*ASKED, *CALLED, ANSWERED]], "It is 7.", ["assistant", "tool", "assistant"], 2),
    "a call as the last turn": ([[*ASKED, *CALLED]], "", ["assistant", "tool"], 2),
    "a branch that ends otherwise": ([[*ASKED, ANSWERED], OTHER], "It is 7.", ["assistant"], 2),
    "no branch that ends so": ([OTHER], "It is 7.", "It is 7.", 0),
    "no turn": ([ASKED], "", "", 0),
    "a question alone": ([[*ASKED[1:], ANSWERED]], "It is 7.", ["assistant"], 0),
}
"""Branches, `last_reply`, the roles of the response or its text, and the number of messages of the task."""


@pytest.mark.parametrize("name", TRACES)
async def test_turns(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The response has the turns from the policy's first one on, the task those before it if they are several."""
    branches, last, roles, asked = TRACES[name]
    requests: list[Request] = []

    async def ascore(batch: list[Request], **_: Any) -> list[Score]:
        requests.extend(batch)
        return [Score(1.0)]

    monkeypatch.setattr(verifiers, "ascore", ascore)
    trace: Any = SimpleNamespace(branches=[SimpleNamespace(nodes=one) for one in branches], last_reply=last, info={})
    assert await verifiers.reward(TASK, trace) == 1.0
    [request] = requests
    response = request.solution_str
    assert roles == (response if isinstance(response, str) else [message["role"] for message in response])
    assert request.extra_info is not None and len(request.extra_info.get("messages", [])) == asked
    assert request.extra_info["question"] == "Weather?"
