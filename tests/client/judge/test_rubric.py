"""Rubrics: the formats of data sets, what the judge is asked, and how its answers are read and scored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewardstack import Request, compute_score, register_judge, register_route, score
from rewardstack.client import route_table
from rewardstack.errors import RequestError, RouteError, ScoringError
from rewardstack.scorers.judge.options import read_options
from rewardstack.scorers.judge.rubric import parse_answers, read_rubric, rubric_verdict, valid_answers
from rewardstack.scorers.judge.verdict import UnreadableError
from rewardstack.settings import Settings
from tests.client.judge.conftest import asked, forget, sample
from tests.support.servers import FaultServer
from tests.support.table import Table

HEALTH_BENCH = [
    {"criterion": "Advises against ibuprofen", "points": 8, "tags": ["axis:accuracy"]},
    {"criterion": "Names a dose", "points": -5, "tags": []},
    {"criterion": "Mentions paracetamol", "points": 2, "tags": []},
]
FINANCE = [
    {"operator": "o", "criteria": "Revenue was 391", "modifiers": {"severity": 3.0, "category": "must_pass"}},
    {"operator": "o", "criteria": "Sentiment was positive"},
]
FORMATS: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "HealthBench": (
        {"rubrics": HEALTH_BENCH},
        [("1", "Advises against ibuprofen", 8), ("2", "Names a dose", -5), ("3", "Mentions paracetamol", 2)],
    ),
    "RuscaRL": ({"reward_model": {"rubrics": HEALTH_BENCH[:1]}}, [("1", "Advises against ibuprofen", 8)]),
    "RaR": (
        {"rubric": [{"title": "Dose", "description": "Pitfall Criteria: Names\na dose", "weight": -1}, {"text": "b"}]},
        [("Dose", "Pitfall Criteria: Names a dose", -1), ("2", "b", 1)],
    ),
    "NeMo Gym": (
        {"rubric": json.dumps(FINANCE)},
        [("1", "Revenue was 391", 3, (), True), ("2", "Sentiment was positive", 1)],
    ),
    "encoded twice": (
        {"rubric": json.dumps(json.dumps(FINANCE[1:]))},
        [("1", "Sentiment was positive", 1)],
    ),
    "verifiers": (
        {"rubrics": {"criteria": [{"name": "tone", "text": "Tone", "weight": 2, "choices": ["rude", "cool", "warm"]}]}},
        [("tone", "Tone", 2, ("rude", "cool", "warm"))],
    ),
    "texts": ({"rubrics": ["Is polite", "Is short"]}, [("1", "Is polite", 1), ("2", "Is short", 1)]),
    "names that are no part's": (
        {"rubrics": [{"name": "acc", "text": "a"}, {"name": "x", "text": "b"}, {"name": "x", "text": "c"}]},
        [("1", "a", 1), ("2", "b", 1), ("3", "c", 1)],
    ),
}
WRONG: dict[str, tuple[Any, str]] = {
    "a text": ("be nice", "expected a list of 1 to 128 criteria"),
    "none": ([], "got 0 criteria"),
    "too many": (["x"] * 129, "got 129 criteria"),
    "a number": ([7], "rubrics[1]: expected an object, got int"),
    "no text": ([{"points": 1}], "rubrics[1]: expected a text"),
    "points in words": (
        [{"criterion": "a", "points": "many"}],
        "rubrics[1].points: expected a number from -1,000,000 to 1,000,000, got 'many'",
    ),
    "a misspelled penalty": (
        [{"criterion": "a", "point": -5}],
        "rubrics[1].point: is not known; did you mean 'points'",
    ),
    "no good points": ([{"criterion": "a", "points": -1}], "no criterion has points above 0"),
    "one choice": ([{"text": "a", "choices": ["only"]}], "rubrics[1].choices: expected a list of 2"),
}


def test_formats(table: Table) -> None:
    """The rubrics of public data sets are read as they are."""
    for name, (extra, expected) in FORMATS.items():
        with table.case(name):
            found = read_rubric(extra)
            assert [tuple(one)[: len(wanted)] for one, wanted in zip(found, expected, strict=True)] == expected
            assert read_rubric({"rubrics": [one.to_record() for one in found]}) == found


def test_wrong_rubrics(table: Table) -> None:
    """A rubric that cannot be used is an error that names the criterion and its field."""
    for name, (value, why) in WRONG.items():
        with table.case(name), pytest.raises(RequestError) as caught:
            read_rubric({"rubrics": value})
        assert why in str(caught.value) and caught.value.field == "extra_info.rubrics"


ANSWERS: dict[str, tuple[str, dict[int, float]]] = {
    "as asked": ("1: yes\n2: no\n3: yes", {0: 1, 1: 0, 2: 1}),
    "decorated": ("- **1:** Yes\n2. no\n* 3: met, for it does", {0: 1, 1: 0, 2: 1}),
    "an object": ('{"1": "yes", "2": "no", "3": "no"}', {0: 1, 1: 0, 2: 0}),
    "a quotation before": ("It says\n1: yes\n2: yes\n3: yes\nbut no:\n1: no\n2: no\n3: no", {0: 0, 1: 0, 2: 0}),
    "thoughts before": ("<think>1: yes</think>1: no\n2: no\n3: no", {0: 0, 1: 0, 2: 0}),
    "one dropped": ("1: yes\n3: yes", {0: 1, 2: 1}),
    "one twice, alike": ("1: yes\n1: yes\n2: no\n3: no", {0: 1, 1: 0, 2: 0}),
    "one twice, differently": ("1: yes\n1: no\n2: no\n3: no", {1: 0, 2: 0}),
    "unclear words": ("1: yes/no\n2: yes and no\n3: no", {2: 0}),
    "prose": ("All are met.", {}),
    "an object that is none": ("{not json}\n1: yes", {0: 1}),
    "an object after words": ('Here:\n```json\n{"1": "yes", "2": "no", "3": "no"}\n```', {0: 1, 1: 0, 2: 0}),
    "a quoted object": ('It wrote {"1": "yes", "2": "yes", "3": "yes"}.\n1: no\n2: no\n3: no', {0: 0, 1: 0, 2: 0}),
    "a quoted object and no answer": ('It wrote {"1": "yes", "2": "yes", "3": "yes"}', {}),
    "a quoted tool call": ('It called price({"of": "loaf"}).\n1: yes\n2: no\n3: no', {0: 1, 1: 0, 2: 0}),
    "an object before a sentence": ('{"1": "yes", "2": "no", "3": "no"}\nAll were checked.', {0: 1, 1: 0, 2: 0}),
    "an object before answers": ('It has\n{"1": "yes", "2": "yes"}\n1: no\n2: no\n3: no', {0: 0, 1: 0, 2: 0}),
    "items that begin with yes": ("1. Yes it names one\n2) no, never\n3) Yes.", {0: 1, 1: 0, 2: 1}),
    "items of a list": ("1. No dose is named\n2. A dose is named\n3. no", {2: 0}),
    "an odd key": ('{"\u00b2": "yes", "1": "yes"}', {0: 1}),
}


def test_answers(table: Table) -> None:
    """The last block of numbered answers counts; a criterion without one clear answer has none, never `no`."""
    answers = valid_answers(read_rubric({"rubrics": HEALTH_BENCH}))
    for name, (text, expected) in ANSWERS.items():
        with table.case(name):
            assert parse_answers(text, answers) == expected
    for text in ("0: yes\n1: no\n2: no", "1: no\n4: yes"):
        with table.case(text), pytest.raises(UnreadableError, match="the criteria are 1 to 3"):
            parse_answers(text, answers)


def test_values(table: Table) -> None:
    """Points met by points above 0, clipped or not; a must-pass criterion that is not met leaves nothing."""
    rubric, finance = read_rubric({"rubrics": HEALTH_BENCH}), read_rubric({"rubrics": FINANCE})
    choices = read_rubric({"rubrics": [{"text": "a", "weight": 3, "choices": ["x", "y", "z"]}, "b"]})
    for criteria, shares, clipped, value in (
        (rubric, [1, 0, 1], True, 1.0),
        (rubric, [1, 1, 1], True, 0.5),
        (rubric, [0, 1, 0], True, 0.0),
        (rubric, [0, 1, 0], False, -0.5),
        (finance, [1, 0], True, 0.75),
        (finance, [0, 1], True, 0.0),
        (choices, [0.5, 1], True, 0.625),
    ):
        with table.case(f"{shares} {clipped}"):
            assert rubric_verdict(criteria, shares, clip_negative=clipped).value == value
    parts = rubric_verdict(rubric, [1, 1, 0], clip_negative=True).parts
    assert parts == {"1": 1, "2": 1, "3": 0, "positive": 0.8, "negative": 1.0}


def rubric_sample(solution: str = "Take none.", **extra: Any) -> Request:
    """A sample with a rubric and no reference."""
    return sample(solution, None, verdict="rubric", **{"rubrics": HEALTH_BENCH, **extra})


def test_one_request(judge: FaultServer) -> None:
    """All criteria are in one request with an enforced form, before the candidate and without their points."""
    judge.set(met=["Advises"])
    [one] = score([rubric_sample()])
    assert (one.value, one.status, one.reason) == (0.8, "ok", "1 of 3 met")
    assert one.parts == {"1": 1.0, "2": 0.0, "3": 0.0, "positive": 0.8, "negative": 0.0}
    [body] = asked(judge)
    user = body["messages"][1]["content"]
    assert body["structured_outputs"]["regex"] == r"1: (no|yes)\n2: (no|yes)\n3: (no|yes)"
    assert "1. Advises against ibuprofen\n2. Names a dose\n" in user and "points" not in user
    assert user.index("Advises") < user.index("Take none.")


def test_criteria_in_parts(judge: FaultServer) -> None:
    """With `max_criteria` a sample costs more requests, which share all that is before the criteria."""
    judge.set(met=["dose", "paracetamol"])
    [one] = score([rubric_sample(max_criteria=2, clip_negative=True)])
    assert (one.value, one.usage.requests if one.usage else 0) == (0.0, 2)
    first, second = sorted((body["messages"][1]["content"] for body in asked(judge)), key=len, reverse=True)
    assert first.index("Take none.") < first.index("1. Advises") and second.count("1. Mentions") == 1


@pytest.mark.parametrize("fault", ["drop", "contradict", "misnumber", "words", "prose"])
def test_incomplete_replies(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Criteria without an answer are asked for once more; then the sample is failed, and none counts as not met."""
    judge.set(met=["Advises", "Names"], faults=[fault], owned_by="someone", models=[{"id": "m", "root": "m"}])
    [one] = score([rubric_sample(temperature=0)])
    assert (one.value, one.status) == (0.3, "ok"), one.reason
    forget(judge, monkeypatch)
    judge.set(met=["Advises", "Names"], faults=[fault, "prose" if fault == "prose" else "words"])
    [one] = score([rubric_sample("Another.")])
    if fault == "prose":
        assert (one.value, len(asked(judge))) == (0.3, 1)
        return
    assert (one.status, one.value) == ("failed", 0.0)
    assert "no verdict in the judge's reply: no answer for" in one.reason
    assert len(asked(judge)) == 2


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"content": "1: yes\n2: no\n3: yes", "finish": "length"}, "it was truncated at max_new_tokens"),
        ({"content": "", "finish": "length"}, "it was truncated at max_new_tokens"),
        ({"raw": '{"choices": [{"message": {"refusal": "No."}}]}'}, "the judge refused: 'No.'"),
        ({"content": "2: yes"}, "no answer for 1 of 3 criteria: 1"),
    ],
)
def test_replies_that_are_cut_or_refused(judge: FaultServer, state: dict[str, Any], why: str) -> None:
    """A truncated reply has no answer to any criterion, nor has a refusal."""
    judge.set(**state)
    [one] = score([rubric_sample()])
    assert one.status == "failed" and why in one.reason


def test_reply_in_parts(judge: FaultServer) -> None:
    """Answers in several parts are read together."""
    texts = [{"type": "text", "text": text} for text in ("1: yes\n2:", " no\n3: yes")]
    judge.set(content=texts)
    assert score([rubric_sample()])[0].value == 1.0


def test_only_what_is_missing_is_asked_again(judge: FaultServer) -> None:
    """The second request has the criteria without an answer, and a reminder."""
    judge.set(met=["Names"], faults=["drop"])
    score([rubric_sample()])
    first, second = (body["messages"][1]["content"] for body in asked(judge))
    assert "1. Names a dose\n</criteria" in second and "could not be read" in second and "could not" not in first


def test_json_schema(judge: FaultServer) -> None:
    """A server that has JSON schemas is asked for an object of numbers; names of criteria are no keys."""
    judge.set(met=["Advises"], owned_by="llamacpp")
    named = [{**one, "name": f"name {at}"} for at, one in enumerate(HEALTH_BENCH)]
    [one] = score([rubric_sample(rubrics=named)])
    assert one.value == 0.8 and one.parts and "name 0" in one.parts
    schema = asked(judge)[-1]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["1", "2", "3"]


def test_one_verdict_on_all(judge: FaultServer) -> None:
    """A custom template with {CRITERIA} shows them with their points, and its reply is read like any other."""
    judge.set(content="REWARD: 10")
    template = "score_range = [1, 10]\n{CANDIDATE_SOLUTION}\n{CRITERIA}\nREWARD: <1 to 10>"
    [one] = score([sample("x", None, prompt_template=template, rubrics=HEALTH_BENCH)])
    assert one.value == 1.0
    assert "2. Names a dose (-5 points)" in asked(judge)[0]["messages"][1]["content"]


def test_a_rubric_that_has_no_effect(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """Criteria that nobody asks for are warned of."""
    from rewardstack.scorers.judge import plan

    plan._warn_of_unused_rubric.cache_clear()
    assert score([sample(rubrics=HEALTH_BENCH)])[0].status == "ok"
    assert "extra_info.rubrics has no effect unless verdict = 'rubric'" in caplog.text


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"verdict": "rubric", "prompt_template": "binary"}, "'binary' has no criteria for verdict 'rubric'"),
    ({"verdict": "rubric", "prompt_template": "{CANDIDATE_SOLUTION}"}, "needs {CANDIDATE_SOLUTION} and {CRITERIA}"),
    ({"verdict": "rubric", "score_range": [0, 1]}, "because the criteria have points"),
    ({"verdict": "rubric", "num_samples": 3}, "leave num_samples out"),
    ({"max_criteria": 2}, "is for verdict 'rubric'"),
    ({"clip_negative": False}, "is for verdict 'rubric'"),
]


def test_options_that_do_not_go_together(table: Table) -> None:
    """Each is an error with the remedy."""
    for extra, why in OPTIONS:
        with table.case(f"{extra}"), pytest.raises(RequestError) as caught:
            read_options(extra)
        assert why in str(caught.value)


def test_without_criteria(judge: FaultServer) -> None:
    """A sample that lacks them is unscored, as is one that would go below 0 on a judge without a name."""
    none, negative = score([sample(verdict="rubric"), rubric_sample(clip_negative=False)])
    assert none.status == negative.status == "unscored"
    assert "verdict 'rubric' needs a list of criteria" in none.reason
    assert "set clip_negative in judges.NAME.options" in negative.reason


@pytest.fixture
def named(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    """A judge by name whose rubric goes below 0."""
    monkeypatch.setattr("rewardstack.client._registered", {})
    options = {"verdict": "rubric", "rubrics": HEALTH_BENCH, "clip_negative": False}
    register_judge("nurse", {"base_url": judge.url, "options": options})
    return judge


def test_below_zero(named: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values are kept as they are, and a failure is raised, for 0 would be better than a bad answer."""
    named.set(met=["Names"])
    extra = {"temperature": 0}
    assert [-0.5, -0.5] == [compute_score("nurse", "400 mg", None, extra) for _ in range(2)]
    assert 1 == len(asked(named))
    named.set(met=[], faults=["words"] * 9)
    with pytest.raises(ScoringError, match="no answer for 3 of 3 criteria"):
        compute_score("nurse", "another", None, extra)
    register_route("sum_of_nurse", {"sum": ["nurse", {"route": "length", "weight": 0.5}]})
    named.set(faults=["words"] * 9)
    with pytest.raises(ScoringError):
        compute_score("sum_of_nurse", "a third", None, {**extra, "target_length": 7})


def test_zero_is_refused_below_zero(named: FaultServer) -> None:
    """A route that leads to such a judge cannot have the policy `zero`."""
    assert "nurse" in route_table(Settings.from_env()).judges
    register_route("nurse_zero", {"route": "nurse", "on_error": "zero"})
    with pytest.raises(RouteError, match="0.0 would reward failed samples"):
        route_table(Settings.from_env())
