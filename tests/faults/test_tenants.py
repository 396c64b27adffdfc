"""What one tenant asks is no quicker because another has asked it: nothing is remembered or shared across keys."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rewardstack.score import Request
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings
from rewardstack_verifier.question import Ruling
from tests.client.embedding import conftest as embeddings
from tests.support.servers import FaultServer
from tests.support.waiting import eventually

QUESTION = "\\sin^2(x)+\\cos^2(x)"
TENANTS = ("one", "another")
RIGHT = Ruling(True)._asdict()
MakeEvaluator = Callable[[], Evaluator]
embedding = embeddings.server


class Decider:
    """In place of the isolated processes: notes what they are asked, and answers once it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    async def run(self, task: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        """What `IsolationClient.run` says of questions: all of them are right."""
        self.asked += [question.answer for question in task["questions"]]
        while not self.may_answer.is_set():
            await asyncio.sleep(0.01)
        return {"verdicts": [RIGHT for _ in task["questions"]]}


@pytest.fixture
def decider(monkeypatch: pytest.MonkeyPatch) -> Decider:
    """Decides every question."""
    one = Decider()
    monkeypatch.setattr(IsolationClient, "run", staticmethod(one.run))
    return one


@pytest.fixture(scope="module")
def evaluator() -> MakeEvaluator:
    """Makes what a reward server or a worker scores with."""
    registry = load_registry(())
    return lambda: Evaluator(Settings.from_env({}), registry)


def ask(evaluator: Evaluator, tenant: str, words: str) -> str:
    """The status of an answer to one and the same question, in words of its own."""
    sample = Request("math", f"{words}: \\boxed{{{QUESTION}}}", "1")
    [score] = evaluator.score([sample], limit=None, tenant=tenant)
    return score.status


def test_verdicts(evaluator: MakeEvaluator, decider: Decider) -> None:
    """A question that was decided for one tenant is decided again for another, once for each of them."""
    here = evaluator()
    for words in ("first", "again"):
        assert ["ok", "ok"] == [ask(here, tenant, words) for tenant in TENANTS]

    assert len(decider.asked) == len(TENANTS)


def test_questions_in_flight(evaluator: MakeEvaluator, decider: Decider) -> None:
    """Who asks what is just being decided for another tenant does not wait with him; for the same one he does."""
    here = evaluator()
    decider.may_answer.clear()
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(ask, here, tenant, words) for tenant in TENANTS for words in ("first", "again")]
        try:
            eventually(lambda: len(decider.asked) == len(TENANTS))
        finally:
            decider.may_answer.set()
        assert ["ok"] * 4 == [call.result(60) for call in calls]

    assert len(decider.asked) == len(TENANTS)


def test_vectors(evaluator: MakeEvaluator, embedding: FaultServer) -> None:
    """A text that was embedded for one tenant is embedded again for another, once for each of them."""
    here = evaluator()
    for candidate in ("a first candidate", "a second one"):
        for tenant in TENANTS:
            sample = Request("embedding_remote", candidate, "the reference of both")
            assert "ok" == here.score([sample], limit=None, tenant=tenant)[0].status

    assert embedding.stats()["texts"] == 3 * len(TENANTS)


def test_scores(evaluator: MakeEvaluator, embedding: FaultServer) -> None:
    """A score that is remembered is its own tenant's."""
    here = evaluator()
    sample = Request("embedding_remote", "a candidate", "its reference")
    cached = [here.score([sample], limit=None, tenant=tenant)[0].cached for tenant in (*TENANTS, *TENANTS)]

    assert cached == [False, False, True, True]
