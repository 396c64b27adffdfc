"""How a reply is read: the last `REWARD:` line after any reasoning, exactly one number on it, within the scale."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rewardstack.scorers.judge.verdict import UNREADABLE, UnreadableError, read_verdict

CASES = json.loads((Path(__file__).parents[2] / "cases" / "judge_replies.json").read_text())


@pytest.mark.parametrize("case", [case for case in CASES if "value" in case], ids=lambda case: case["name"])
def test_readable(case: dict[str, Any]) -> None:
    """The verdict is the number, divided by the upper end of the template's scale."""
    assert case["value"] == pytest.approx(read_verdict(case["text"], case["top"], cut=case["cut"]))


@pytest.mark.parametrize("case", [case for case in CASES if "why" in case], ids=lambda case: case["name"])
def test_unreadable(case: dict[str, Any]) -> None:
    """What is not exactly one number within the scale is no verdict, and the error says why."""
    with pytest.raises(UnreadableError, match=f"^{UNREADABLE}: .*{case['why']}"):
        read_verdict(case["text"], case["top"], cut=case["cut"])


@pytest.mark.parametrize(
    "text",
    ["REWARD: " + "1" * 500_000, "REWARD" * 200_000, "*" * 500_000, "REWARD: " + " " * 500_000, "\nREWARD:" * 200_000],
)
def test_long_replies(text: str) -> None:
    """A reply of any shape is read in time that grows no faster than its length."""
    started = time.process_time()
    with pytest.raises(UnreadableError):
        read_verdict(text, 1.0)
    assert time.process_time() - started < 2
