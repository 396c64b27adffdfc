"""What the server decides without an isolated process: nothing else than what that process would have said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchmarks.mix import make_samples
from rewardstack.core.lru import LruCache
from rewardstack.score import Item, Score
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.launch import start_supervisor
from rewardstack_rules.scoring import rule as local_rule
from rewardstack_rules.scoring.pools import isolation_config
from rewardstack_rules.scoring.rule import (
    MAX_CACHED_VERDICTS,
    MAX_INLINE,
    Isolation,
    LocalSample,
    VerifierRule,
)
from rewardstack_rules.settings import Settings
from rewardstack_verifier.question import Question, ask
from rewardstack_verifier.shortcut import decide_fast_path
from rewardstack_verifier.verification import decide
from tests.support.scoring import context, pipeline_of, scored
from tests.support.slow_questions import FOR_EVER
from tests.support.table import Table

FILES = sorted((Path(__file__).parents[1] / "cases" / "mathematics").glob("*.json"))
CASES = [case for path in FILES for case in json.loads(path.read_text())]
NUMBERS = (
    *("0", "-0", "7", "5", "+5", "05", "-5", "5.0", "5.", ".5", "0.5", "1/2", "\\frac{1}{2}", "\\frac{2}{4}", "-1/2"),
    *("\\frac12", "2\\frac{1}{2}", "2 1/2", "2.5", "1,234", "1234", "1234.0", "1,23", "1, 234", "0.333333", "1/3"),
    *("50%", "50\\%", "5 \\times 10^{3}", "5000", "10^{3}", "5e3", "1/0", "\\frac{1}{0}", "\\$5", "5 cm", "x = 5"),
    *("5\\text{ cm}", "{5}", "(5)", "\\{5\\}", "5;", "5, 6", "6, 5", "1,234, 5", "", "five", "5^\\circ", "1011_2"),
)
SLOW = Item(f"\\boxed{{\\sqrt{{{FOR_EVER}}}}}", ("5",))
ORDINARY = [Item(f"\\boxed{{\\sqrt{{{2 * n * n}}}}}", (f"{n}\\sqrt{{2}}",)) for n in range(3, 9)]


Pairs = Iterable[tuple[str, str]]
SOURCES: dict[str, tuple[Callable[[], Pairs], int]] = {
    "cases": (lambda: ((case["response"], case["reference"]) for case in CASES), 2000),
    "samples": (lambda: ((one.response, one.reference) for one in make_samples(2000, seed=17)), 1000),
    "numbers": (lambda: ((f"\\boxed{{{one}}}", other) for one, other in product(NUMBERS, NUMBERS)), 600),
}
"""Pairs of a response and a reference, and how many of their questions are compared at least."""


def questions(pairs: Pairs) -> Iterator[Question]:
    """Yield what each pair asks, with its reference alone and beside one that is a number, a root, or cut off."""
    for response, reference in pairs:
        question = ask(response, [reference])
        if isinstance(question, Question):
            own = question.expected
            for expected in (own, (*own, "7"), ("\\sqrt{7}", *own), ("\\frac{1}{", *own)):
                yield question._replace(expected=expected)


@pytest.mark.parametrize("source", SOURCES)
def test_same_verdict(source: str, table: Table) -> None:
    """Whatever is decided plainly is what the isolated processes decide, word for word; and that is a good part."""
    pairs, least = SOURCES[source]
    compared = 0
    for place, question in enumerate(questions(pairs())):
        verdict = decide_fast_path(question)
        if verdict is not None:
            compared += 1
            with table.case(f"{place}: {question}"):
                assert decide(question)[:2] == verdict[:2]

    assert compared > least


@pytest.mark.usefixtures("needs_process")
def test_no_library() -> None:
    """A server process does not load the algebra that only isolated processes need."""
    code = (
        "import sys; from rewardstack_rules.http.app import create_app; from rewardstack_verifier.question import ask;"
        "from rewardstack_verifier.shortcut import decide_fast_path;"
        "create_app(); print(decide_fast_path(ask('#### 5', ['5.0'])));"
        "print(sorted({'flint', 'rewardstack_verifier.comparison.compare'} & set(sys.modules)))"
    )
    assert _printed(code).splitlines() == ["Ruling(right=True, reason='', by='')", "[]"]


@pytest.mark.usefixtures("needs_process")
def test_master_loads_no_rules() -> None:
    """gunicorn's master loads none of what scores, so that a reload takes up whatever of it has changed."""
    code = (
        "import sys; from rewardstack_rules.http import gunicorn_conf;"
        "rooms = {'functions', 'mathematics', 'golden'};"
        "print(sorted(one for one in rooms if f'rewardstack_rules.{one}' in sys.modules))"
    )
    assert _printed(code) == "[]\n"


def _printed(code: str) -> str:
    """What a new process prints that runs this code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    return done.stdout


@pytest_asyncio.fixture
async def isolation(needs_process: None) -> AsyncIterator[Isolation]:
    """Isolated processes, two fast and two slow."""
    config = isolation_config(Settings.from_env())
    config = replace(config, entry="tests.support.slow_questions:execute", fast=2, slow=2)
    home = start_supervisor(config)
    client = IsolationClient(config)
    yield Isolation(client, 60.0)
    client.close()
    home.close()


def verifier(name: str, isolation: Isolation) -> VerifierRule:
    """The scorer of a built-in verifier."""
    rule = load_registry([]).get(name)
    assert rule.verifier is not None
    return VerifierRule(rule, rule.verifier, isolation, LruCache(MAX_CACHED_VERDICTS))


async def answers(one: VerifierRule, items: list[Item], limit: float | None = None) -> list[Score]:
    """The scores of items none of which is decided inline."""
    found = [one.inline(one.prepare(item)) for item in items]
    undecided = [sample for sample in found if isinstance(sample, LocalSample)]
    return await one.score(undecided, context(timeout=80_000, limit=limit))


def plainly(score: Score) -> tuple[Any, ...]:
    """All of a score but the time it took."""
    return score.value, score.status, score.reason, score.source, score.parts


@pytest.mark.parametrize("name", ["math", "math_verifier"])
async def test_same_score(name: str, isolation: Isolation) -> None:
    """A verifier's scores are the rule's own, value, reason and parts, whichever way they were found."""
    one = verifier(name, isolation)
    answers = ("5", "6", "\\frac{10}{2}", "\\sqrt{25}", "x+1", "")
    responses = [
        form.format(answer) for form, answer in product(("<think>a</think><answer>{}</answer>", "{}"), answers)
    ]
    items = [
        Item(response, (reference,)) for response, reference in product(responses, ("5", "2\\sqrt{3}", "\\frac{1}{"))
    ]

    scores = await scored(pipeline_of(one), *items)

    expected = [one._score_inline(item) for item in items]
    assert [plainly(score) for score in expected] == [plainly(score) for score in scores]


async def test_what_is_decided(isolation: Isolation) -> None:
    """Numbers and equal texts are decided here; algebra is asked about; the rest is handed on."""
    one = verifier("math", isolation)
    long = "x" * MAX_INLINE
    prepared = [
        one.prepare(item)
        for item in (
            Item("#### 5", ("5",)),
            Item("#### 6", ("5",)),
            Item("\\boxed{\\sqrt{2}}", ("\\sqrt{2}",)),
            Item("\\boxed{\\sqrt{8}}", ("2\\sqrt{2}",)),
            Item(f"{long}#### 5", ("5",)),
            Item("#### 5", ()),
        )
    ]

    found = [one.inline(sample) for sample in prepared]

    assert [isinstance(outcome, Score) for outcome in found] == [True, True, True, False, False, False]
    left = [outcome for outcome in found if isinstance(outcome, LocalSample)]
    assert [sample.question is not None for sample in left] == [True, False, False]


async def test_verdict_is_remembered(isolation: Isolation) -> None:
    """What an isolated process decided once is not decided again for another response with the same answer."""
    one = verifier("math", isolation)

    [first] = await answers(one, [Item("\\boxed{\\sqrt{8}}", ("2\\sqrt{2}",))])
    isolation._client.close()
    isolation.run = None  # type: ignore[assignment, method-assign]
    [again] = await answers(one, [Item("So it is $\\boxed{\\sqrt{8}}$.", ("2\\sqrt{2}",))])

    assert plainly(first) == plainly(again)


async def test_fault_inline(isolation: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in what runs inline costs nobody a score: the sample goes to an isolated process."""
    monkeypatch.setattr(local_rule, "decide_fast_path", lambda question: 1 / 0)
    one = verifier("math", isolation)
    scores = await scored(pipeline_of(one), Item("#### 6", ("5",)), Item("#### 5", ("5",)))

    assert [(score.value, score.status) for score in scores] == [(0.0, "ok"), (1.0, "ok")]


async def test_slow_among_others(isolation: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that never ends does so at the limit; those whose questions travel with its own do not."""
    run = isolation._client.run

    async def run_alone_in_a_second(task: Mapping[str, Any], timeout: float, **options: Any) -> Any:
        [first, *others] = task["questions"]
        is_endless = FOR_EVER in first.answer and not others
        return await run(task, 1.0 if is_endless else timeout, **options)  # expires

    monkeypatch.setattr(isolation._client, "run", run_alone_in_a_second)

    scores = await answers(verifier("math", isolation), [*ORDINARY, SLOW, *ORDINARY])

    assert [score.value for score in scores] == [1.0] * 6 + [None] + [1.0] * 6
    assert (scores[6].status, scores[6].reason) == ("failed", "math: the sample took longer than 60 s")


async def test_caller_gives_up(isolation: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the caller's timeout unfinished samples have failed, the rest is scored, and nothing keeps running."""
    isolation.timeout = 80_000.0
    ahead, real_time, run, decided = 0.0, time.monotonic, isolation._client.run, list[object]()
    monkeypatch.setattr(time, "monotonic", lambda: real_time() + ahead)

    async def run_and_note(task: Mapping[str, Any], timeout: float, **options: Any) -> Any:
        result = await run(task, timeout, **options)
        decided.extend(result.get("verdicts", ()))
        return result

    monkeypatch.setattr(isolation._client, "run", run_and_note)

    asked = asyncio.create_task(answers(verifier("math", isolation), [SLOW, *ORDINARY], limit=3600))
    while len(decided) < len(ORDINARY):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.1)
    ahead = 3600.0
    scores = await asked

    assert [score.status for score in scores] == ["failed"] + ["ok"] * 6
    for _ in range(1200):
        stats = await isolation._client.stats()
        if not stats["busy"]:
            break
        await asyncio.sleep(0.05)
    assert (stats["busy"], stats["queued"], stats["slow_queued"]) == (0, 0, 0)


async def test_cached_like_others(isolation: Isolation) -> None:
    """A score found at once is kept in this process under the sample's own key."""
    pipeline = pipeline_of(verifier("math", isolation))

    [first] = await scored(pipeline, Item("#### 6", ("5",)))
    [again] = await scored(pipeline, Item("#### 6", ("5",)))

    assert (first.cached, again.cached) == (False, True)


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path), "PATH": ""}
