"""Groups compared by a real vLLM and a weak model: both modes are complete, and cost what the page says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rewardstack import Request, Score, client, register_judge, score
from rewardstack.settings import Settings
from tests.judge_vllm.conftest import PROBLEM, RIGHT, WRONG

TEXTS = [f"{text} ({at})" for at in range(4) for text in (RIGHT, WRONG)]


@pytest.fixture(autouse=True)
def no_routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test registers its own judge."""
    monkeypatch.setattr(client, "_registered", {})
    yield


def compared(**table: Any) -> list[Score]:
    """The scores of eight answers that the environment's judge compares."""
    [url] = Settings.from_env().judge_urls
    register_judge("ruler", {"base_url": url, "options": {"temperature": 0}, **table})
    return score([Request("ruler", text, None, {"problem": PROBLEM}) for text in TEXTS])


def requests_of(scores: list[Score]) -> int:
    """The requests of a group."""
    return sum(one.usage.requests for one in scores if one.usage)


def test_listwise() -> None:
    """A list has a score for each of eight answers, in both orders, in two requests."""
    scores = compared(compare="listwise")
    assert ["ok"] * 8 == [one.status for one in scores], [one.reason for one in scores]
    assert all(one.value is not None and 0 <= one.value <= 1 for one in scores)
    assert 2 == requests_of(scores)


@pytest.mark.parametrize(("pairs", "requests"), [("circular", 16), ("all", 56)])
def test_pairwise(pairs: str, requests: int) -> None:
    """Probabilities rank eight answers, at one token a request; the mean of all pairs is a half."""
    scores = compared(compare="pairwise", pairs=pairs)
    assert ["ok"] * 8 == [one.status for one in scores], [one.reason for one in scores]
    assert requests == requests_of(scores) == sum(one.usage.completion_tokens for one in scores if one.usage)
    assert len({one.value for one in scores}) > 1
    assert all(one.agreement is not None for one in scores)
    if pairs == "all":
        assert pytest.approx(0.5) == sum(one.value or 0 for one in scores) / 8
