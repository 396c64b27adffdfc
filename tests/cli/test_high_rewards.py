"""`rewardstack evaluate` of a sample log: what goes with high rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score
from rewardstack.core.sample_log import SampleLog
from rewardstack_cli.evaluation.high_rewards import describe
from rewardstack_cli.main import main


def logged(path: Path, samples: list[tuple[str, float]], route: str = "r", status: Any = "ok") -> None:
    """Writes samples as a reward server does."""
    requests = [Request("x", text, "1") for text, _ in samples]
    SampleLog(path, 1.0).write(requests, [Score(value, status) for _, value in samples], [route] * len(samples))


def test_hacked_reward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A phrase that a policy found, repetition and length are named; a route whose rewards are all equal says so."""
    hacked = [(f"Answer {at}: as an expert I agree. " + "very good " * 20, 1.0) for at in range(10)]
    honest = [(f"Well, {at} plus one makes {at + 1}.", at % 2 / 10) for at in range(30)]
    logged(tmp_path / "log.jsonl", hacked + honest)
    logged(tmp_path / "log.jsonl", [("x", 0.0)] * 3, "flat")
    logged(tmp_path / "log.jsonl", [("x", 7.0)], "failed", "failed")

    assert main(["evaluate", str(tmp_path / "log.jsonl")]) == 0

    out = " ".join(capsys.readouterr().out.split())
    assert "flat: 3 rewards, mean 0; all are 0, so none is high" in out
    assert "r: 40 rewards, mean 0.287; 10 are high (at least 1)" in out
    assert "length: high 232 characters, others " in out and "correlation with the reward +0.9" in out
    assert "phrase 'an expert i agree': in 100% of the high ones, 0% of the others" in out
    assert "failed:" not in out


def test_binary_rewards() -> None:
    """If few have the highest reward, they alone are high; what is as frequent among others is not named."""
    rows = [
        {"status": "ok", "value": float(at < 5), "route": "r", "solution_str": "the same words in each"}
        for at in range(50)
    ]

    lines = describe(rows)

    assert lines[0].endswith("5 are high (at least 1)")
    assert len(lines) == 3 and "correlation" not in lines[1]
    assert describe([]) == ["no sample has a reward"]
