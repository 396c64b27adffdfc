"""Verdicts in words: what a weak model makes of each template."""

from __future__ import annotations

import pytest

from rewardstack import Request, score
from rewardstack.scorers.judge.verdict import UNREADABLE
from tests.judge_vllm.conftest import PROBLEM, REFERENCE, RIGHT, WRONG, judge

WILD = {"temperature": 2.0, "top_p": 1.0}
OWN = "Problem: {PROBLEM}\nReference: {REFERENCE_SOLUTION}\nCandidate: {CANDIDATE_SOLUTION}\nREWARD: <0 to 1>"


@pytest.mark.parametrize("template", ["default", "binary", "points"])
def test_structured(template: str) -> None:
    """A verdict is read from every reply to a short template, however wildly the model is sampled."""
    extra = {"problem": PROBLEM, "prompt_template": template, **WILD}
    candidates = [f"{text} ({at})" for at in range(6) for text in (RIGHT, WRONG)]
    scores = score([Request("llm_judge_remote", candidate, REFERENCE, extra) for candidate in candidates])

    assert ["ok"] * 12 == [one.status for one in scores], [one.reason for one in scores]
    assert all(one.value is not None and 0 <= one.value <= 1 for one in scores)
    assert template != "binary" or {one.value for one in scores} <= {0.0, 1.0}


@pytest.mark.parametrize("template", ["detailed", OWN])
def test_free_form(template: str) -> None:
    """A template without a form ends in a verdict, or in `failed` and the reason, and never in a guess."""
    one = judge(RIGHT, prompt_template=template, max_new_tokens=48)

    assert one.status == "ok" or (one.status, one.value) == ("failed", 0.0)
    assert one.status == "ok" or one.reason.startswith(UNREADABLE)


def test_same_again() -> None:
    """At temperature 0 the same sample gets the same verdict."""
    assert judge(RIGHT, temperature=0).value == judge(RIGHT, temperature=0).value


def test_best_reference() -> None:
    """Of several references the best verdict counts."""
    references = ["The answer is 7.", REFERENCE]
    alone = [judge(WRONG, reference, temperature=0).value for reference in references]

    assert judge(WRONG, references, temperature=0).value == max(value for value in alone if value is not None)


def test_too_long() -> None:
    """A candidate beyond the judge's context scores 0, and its reason says so."""
    one = judge("and so on " * 20_000)

    assert (one.status, one.value) == ("ok", 0.0)
    assert "longer than the judge's context" in one.reason


def test_batch_is_logged_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """Throughput, latency and unreadable verdicts of a batch stand in one line at INFO."""
    with caplog.at_level("INFO", "rewardstack"):
        judge(RIGHT)

    [line] = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert all(word in line for word in ("1 samples", "a second", "latency", "failed", "without a readable verdict"))
