"""Judges that compare the members of a group: requests, values, which samples are a group, and groups over calls."""

from __future__ import annotations

import asyncio
import gc
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack import Request, Score, ascore, client, compute_score, register_judge, register_route, score
from rewardstack.client import route_table
from rewardstack.errors import ConfigError, RequestError, RouteError
from rewardstack.routing.judges import Comparison
from rewardstack.scorers.judge import groups
from rewardstack.scorers.judge.comparison import combine_lists, combine_pairs, request_orders
from rewardstack.scorers.judge.rubric import parse_grades
from rewardstack.scorers.judge.verdict import UnreadableError
from rewardstack.settings import Settings
from tests.client.judge.conftest import asked
from tests.support.servers import FaultServer
from tests.support.table import Table

CANDIDATE = re.compile(r"^Candidate (\w+):\n<(candidate-\w+)>\n(.*?)\n</\2>", re.DOTALL | re.MULTILINE)
EIGHT = [f"It is {at}." for at in (10, 80, 30, 55, 20, 70, 40, 60)]


@pytest.fixture(autouse=True)
def no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test registers its own judges."""
    monkeypatch.setattr(client, "_registered", {})


@pytest.fixture
def comparing(judge: FaultServer) -> FaultServer:
    """A judge that compares candidates by the last number in their texts."""
    judge.set(compares=True)
    return judge


def register(judge: FaultServer, compare: str = "listwise", name: str = "ruler", **table: Any) -> None:
    """Register a judge that compares."""
    register_judge(name, {"base_url": judge.url, "compare": compare, **table})


def group(texts: Sequence[str], problem: str = "Which number?", source: str = "ruler", **extra: Any) -> list[Request]:
    """The samples of a group."""
    return [Request(source, text, None, {"problem": problem, **extra}) for text in texts]


def shown(body: dict[str, Any]) -> list[str]:
    """The texts of the candidates in a request, in their order."""
    return [text for _, _, text in CANDIDATE.findall(body["messages"][1]["content"])]


def values(scores: Sequence[Score]) -> list[float | None]:
    """The values of scores."""
    return [one.value for one in scores]


def test_listwise(comparing: FaultServer) -> None:
    """All members are in one request, then in another in reverse; the value is the mean of the scores."""
    register(comparing)
    comparing.set(compares=True, first=0.1)
    scores = score(group(EIGHT))
    first, second = (shown(body) for body in asked(comparing))
    assert sorted(EIGHT) == sorted(first) and first == second[::-1]
    merits = {text: int(text[6:-1]) / 100 + 0.05 * (text in (first[0], first[-1])) for text in EIGHT}
    assert [pytest.approx(merits[text]) for text in EIGHT] == values(scores)
    ranked = sorted(merits.values(), reverse=True)
    assert [1.0 + ranked.index(merits[text]) for text in EIGHT] == [(one.parts or {})["rank"] for one in scores]
    assert [8 - rank for rank in (1.0 + ranked.index(merits[text]) for text in EIGHT)] == [
        (one.parts or {})["wins"] for one in scores
    ]


def test_listwise_order(comparing: FaultServer) -> None:
    """The order in which members are shown depends on their texts, not on their order in the call."""
    register(comparing, orders=1)
    first, second = score(group(EIGHT)), score(group(EIGHT[::-1]))
    assert values(first) == values(second)[::-1] and [None] * 8 == [one.agreement for one in first]
    one, other = asked(comparing)
    assert shown(one) == shown(other)


CALLS = {
    "a list": ({"compare": "listwise"}, 2, 2),
    "a list, in one order": ({"compare": "listwise", "orders": 1}, 1, 1),
    "each with the next": ({"compare": "pairwise", "pairs": "circular"}, 16, 32),
    "all pairs": ({"compare": "pairwise"}, 56, 240),
    "all pairs, in one order": ({"compare": "pairwise", "orders": 1}, 28, 120),
}


@pytest.mark.parametrize(("table", "eight", "sixteen"), CALLS.values(), ids=CALLS)
def test_calls(comparing: FaultServer, table: dict[str, Any], eight: int, sixteen: int) -> None:
    """A group of eight takes as many requests as the page says; they are the usage of one of its scores."""
    register(comparing, **table)
    scores = score(group(EIGHT))
    assert ["ok"] * 8 == [one.status for one in scores], scores[0].reason
    assert eight == len(asked(comparing)) == sum(one.usage.requests for one in scores if one.usage)
    how = Comparison(table["compare"], table.get("pairs", "all"), table.get("orders", 2))
    assert sixteen == len(request_orders(16, how))


def test_pairwise(comparing: FaultServer) -> None:
    """A member's value is the sum of its probabilities to be better over both orders / (n - 1); the mean is a half."""
    register(comparing, "pairwise")
    comparing.set(compares=True, first=0.06)
    scores = score(group(EIGHT))
    merits = [int(text[6:-1]) / 100 for text in EIGHT]
    expected = [sum((1 + own - other) / 2 for other in merits if other != own) / 7 for own in merits]
    assert pytest.approx(expected, abs=1e-6) == values(scores)
    assert pytest.approx(0.5) == sum(one.value or 0 for one in scores) / 8
    near = sum(abs(one - other) < 0.12 for at, one in enumerate(merits) for other in merits[:at])
    assert pytest.approx(1 - near / 28) == scores[0].agreement
    for body in asked(comparing):
        assert 1 == body["max_tokens"] and 2 == len(shown(body))


def test_always_the_first(judge: FaultServer) -> None:
    """A judge that always prefers what it sees first gives equal values, and its orders agree about no pair."""
    register(judge, "pairwise")
    judge.set(chances={"A": 0.9, "B": 0.1})
    scores = score(group(EIGHT))
    assert [(pytest.approx(0.5), 0.0, 1.0)] * 8 == [
        (one.value, one.agreement, (one.parts or {})["rank"]) for one in scores
    ]


def test_equal_and_blank_texts(comparing: FaultServer) -> None:
    """Equal texts are judged once and share their value; one without an answer gets 0 and is not shown."""
    for name in ("listwise", "pairwise"):
        register(comparing, name, name, orders=1)
        texts = ["It is 30.", " ", "It is 60.", "It is 30.", "<think>It is 99.</think>"]
        scores = score(group(texts, source=name))
        first, blank, best, again, hidden = scores
        assert first.value == again.value and 0 < (first.value or 0) < (best.value or 0)
        assert [(0.0, "ok", 4.0)] * 2 == [(one.value, one.status, (one.parts or {})["rank"]) for one in (blank, hidden)]
        assert ["It is 30.", "It is 60."] == sorted(shown(asked(comparing)[-1]))
    assert 2 == len(asked(comparing))
    same = score(group(["It is 30."] * 4, source="pairwise"))
    assert [0.5] * 4 == values(same) and 2 == len(asked(comparing))


def test_incomplete_reply(comparing: FaultServer) -> None:
    """A reply without one of the members is asked for once more; after a second one all members have failed."""
    register(comparing, orders=1)
    for fault, why in (("drop", "scores for 7 of 8 candidates; missing: 2"), ("high", "'7.50', is not from 0 to 1")):
        comparing.set(faults=[fault])
        assert {"ok"} == {one.status for one in score(group(EIGHT), on_error="none")}
        assert "could not be read" in asked(comparing)[-1]["messages"][1]["content"]
        comparing.set(faults=[fault, fault])
        scores = score(group(EIGHT), on_error="none")
        assert [("failed", None)] * 8 == [(one.status, one.value) for one in scores] and why in scores[0].reason


GRADES: dict[str, tuple[str, list[float] | str]] = {
    "as asked": ("1: 0.50\n2: 1.00\n3: 0.00", [0.5, 1, 0]),
    "decorated": ("- **1:** 0.5\n2) 1\n3. .25", [0.5, 1, 0.25]),
    "with names": ("Candidate 1: 0.50\nCandidate 2: 0.6\nCandidate 3: 0", [0.5, 0.6, 0]),
    "an object": ('{"1": 0.5, "2": 1, "3": 0}', [0.5, 1, 0]),
    "thoughts before": ("<think>1: 0.9\n2: 0.9</think>1: 0.1\n2: 0.2\n3: 0.3", [0.1, 0.2, 0.3]),
    "one missing": ("1: 0.50\n3: 0.00", "missing: 2"),
    "one twice": ("1: 0.50\n1: 0.60\n2: 0.1\n3: 0.00", "candidate 1, twice"),
    "one too many": ("1: 0.50\n2: 0.60\n3: 0.1\n4: 0.00", "candidate 4, but the candidates are 1 to 3"),
    "another scale": ("1: 8\n2: 9\n3: 7", "candidate 1, '8', is not from 0 to 1"),
    "words in an object": ('{"1": "good", "2": 1, "3": 0}', "candidate 1, 'good'"),
    "percent": ("1: 80%\n2: 90%\n3: 70%", "scores for 0 of 3"),
    "prose": ("They are all good.", "scores for 0 of 3"),
    "a quoted object": ('It wrote {"1": 1.0, "2": 0.0, "3": 0.0}, a trick.\n1: 0.1\n2: 0.9\n3: 0.5', [0.1, 0.9, 0.5]),
    "decimal commas": ("1: 0,85\n2: 0,95\n3: 1,00", "scores for 0 of 3"),
    "ratios": ("1: 1 out of 10\n2: 1 / 10\n3: 1 %", "scores for 0 of 3"),
    "ranges": ("1: 0.8 to 0.9\n2: 0.5 \u2192 0.8\n3: 0.5", "scores for 1 of 3"),
    "below 0": ("1:-0.5\n2: 0.5\n3: 0.5", "scores for 2 of 3"),
    "with remarks": ("1: 0.80 (error in step 2)\n2: 0.5, off topic and out of scope\n3: 1 - good", [0.8, 0.5, 1]),
    "with a dash": ("1 - 0.5\n2 - 0.5\n3 - 1, the best", [0.5, 0.5, 1]),
}


def test_grades(table: Table) -> None:
    """A list is read only if it has one score from 0 to 1 for each candidate."""
    for name, (text, expected) in GRADES.items():
        with table.case(name):
            if isinstance(expected, list):
                assert parse_grades(text, 3) == expected
                continue
            with pytest.raises(UnreadableError) as caught:
                parse_grades(text, 3)
            assert expected in str(caught.value)


def test_outcomes(table: Table) -> None:
    """Ties count half a win; about a pair both orders agree if they prefer the same one, or none."""
    with table.case("lists"):
        outcome = combine_lists(3, [(0, 1, 2), (2, 1, 0)], [[0.5, 0.5, 0.1], [0.3, 0.5, 0.5]])
        assert ([0.5, 0.5, 0.2], [1.5, 1.5, 0.0], 1.0) == outcome
    with table.case("lists that disagree"):
        assert pytest.approx(1 / 3) == combine_lists(3, [(0, 1, 2), (2, 1, 0)], [[1, 0.5, 0], [1, 0, 0.5]]).agreement
    with table.case("pairs"):
        outcome = combine_pairs(2, [(0, 1), (1, 0)], [0.8, 0.4])
        assert ([0.7, 0.3], [1.0, 0.0], 1.0) == outcome
    with table.case("pairs, each with the next"):
        assert [(0, 1), (1, 2), (2, 0)] == request_orders(3, Comparison("pairwise", "circular", 1))
        assert [(0, 1)] == request_orders(2, Comparison("pairwise", "circular", 1))
        assert [0.75, 0.25, 0.5] == combine_pairs(3, [(0, 1), (1, 2), (2, 0)], [0.75, 0.25, 0.25]).values
    with table.case("one"):
        assert ([(0,)], []) == (request_orders(1, Comparison("listwise")), request_orders(1, Comparison("pairwise")))


def test_groups_of_a_call(comparing: FaultServer) -> None:
    """Members are those with the same source, problem and references, or the same `group_id` whatever the problem."""
    register(comparing, orders=1)
    two = [Request("ruler", f"It is {at}.", reference, {"problem": "p"}) for at in (1, 2) for reference in ("a", "b")]
    named = [
        Request("ruler", f"It is {at}.", None, {"problem": f"{at} in /tmp/{at}", "group_id": 7}) for at in range(4)
    ]
    also = group(["It is 5.", "It is 6."], source="ruler_other", problem="p")
    scores = score([*two, *named, *also])
    assert {"ok"} == {one.status for one in scores}
    found = sorted(sorted(int(text[6:-1]) for text in shown(body)) for body in asked(comparing))
    assert [[0, 1, 2, 3], [1, 2], [1, 2], [5, 6]] == found


def test_refused_samples(comparing: FaultServer, table: Table) -> None:
    """A sample is unscored that is alone, that belongs to no group, or whose group is too large; it is named."""
    register(comparing, max_group_size=4)
    fine = group(["It is 1.", "It is 2."], problem="fine")
    cases: dict[str, tuple[list[Request], str, str]] = {
        "alone": (group(["It is 1."]), "group_id", "no other member in this call"),
        "no group": ([Request("ruler", "It is 1.")], "group_id", "missing, and so is `problem`"),
        "too large": (group(EIGHT), "group_id", "its group has 8 members, above max_group_size = 4"),
        "a list as a name": (group(["It is 1."], group_id=[1]), "group_id", "expected a text or a whole number"),
        "a size above the limit": (group(["It is 1."], group_size=5), "group_size", "a whole number from 1 to 4"),
    }
    for name, (wrong, field, why) in cases.items():
        with table.case(name):
            *scores, _, _ = score([*wrong, *fine], on_error="none")
            assert {("unscored", f"extra_info.{field}")} == {(one.status, one.field) for one in scores}
            assert why in scores[0].reason
    with pytest.raises(RequestError, match="above max_group_size = 4"):
        score(group(EIGHT))


def test_ignored_options(comparing: FaultServer) -> None:
    """A sample cannot have its group judged in another way."""
    register(comparing, orders=1)
    extra: dict[str, Any] = {
        "num_samples": 3,
        "verdict": "logprob",
        "prompt_template": "{CANDIDATE_SOLUTION} REWARD: 1",
        "rubrics": ["a"],
    }
    assert {"ok"} == {one.status for one in score(group(EIGHT, **extra))}
    (body,) = asked(comparing)
    assert "Compare the candidate solutions" in body["messages"][1]["content"]


def test_no_probabilities(judge: FaultServer) -> None:
    """A judge that returns no probabilities cannot compare pairs: the error names the field and the remedy."""
    register(judge, "pairwise")
    judge.set(owned_by="someone", raw='{"choices": [{"message": {"content": "A"}}]}')
    with pytest.raises(RouteError, match="judges.ruler.compare: .* set compare = 'listwise'"):
        score(group(EIGHT))


def test_own_template(comparing: FaultServer) -> None:
    """A template says where problem, references and candidates go; several references are shown together."""
    register(
        comparing, orders=1, template="Problem: {PROBLEM} Right: {REFERENCE_SOLUTION} Of these:\n{CANDIDATE_SOLUTION}"
    )
    members = [Request("ruler", text, ["It is 90.", "Ninety."], {"problem": "p"}) for text in EIGHT]
    assert {"ok"} == {one.status for one in score(members)}
    text = asked(comparing)[0]["messages"][1]["content"]
    assert re.match(r"Problem: <problem-\w+>\np\n.* Right: <reference-\w+>\nIt is 90.\n.*Ninety", text, re.DOTALL)
    assert 8 == text.count("</candidate-")


def test_outage(comparing: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one request of a group fails, all members have failed, with the cause; what was spent is told once."""
    monkeypatch.setenv("REWARDSTACK_MAX_RETRIES", "0")
    register(comparing, "pairwise", pairs="circular")
    comparing.set(status=400, error={"error": {"message": "not today"}})
    scores = score(group(EIGHT), on_error="none")
    assert [("failed", None)] * 8 == [(one.status, one.value) for one in scores] and "not today" in scores[0].reason
    assert [16] == [one.usage.requests for one in scores if one.usage]


def test_single_route(comparing: FaultServer) -> None:
    """A sample that says that its group has one member is scored by `single_route`, alone and as a part."""
    register(comparing, single_route="exact_match")
    register_route("both", {"sum": ["ruler", "length"]})
    alone = Request("ruler", "42", "42", {"problem": "p", "group_size": 1})
    first, *others = score([alone, *group(EIGHT)])
    assert (1.0, "rule:exact_match") == (first.value, first.source)
    assert {"llm_judge:ruler"} == {one.source for one in others}
    part = compute_score("both", "42", "42", {"problem": "p", "group_size": 1, "max_length": 10})
    assert isinstance(part, float) and part >= 1.0


def test_single_route_is_missing(comparing: FaultServer) -> None:
    """Without `single_route` a group of one is a ConfigError; so is a route that compares, too, or that is unknown."""
    register(comparing)
    with pytest.raises(ConfigError, match="judges.ruler.single_route: missing"):
        score(group(["It is 1."], group_size=1))
    register(comparing, name="again", single_route="ruler")
    with pytest.raises(RouteError, match="judges.again.single_route: 'ruler' compares groups, too"):
        route_table(Settings.from_env())
    client._registered.pop("again")
    register(comparing, name="third", single_route="absent")
    with pytest.raises(RouteError, match="route 'third': data_source 'absent' has no route"):
        route_table(Settings.from_env())


def test_group_over_calls(comparing: FaultServer) -> None:
    """With `group_size` the members of a group come from any calls and threads; none is lost, or in another group."""
    register(comparing, group_size=8, group_wait=50, orders=1)
    texts = [[f"It is {group} of {member}." for member in range(8)] for group in range(128)]

    def one_member(member: int) -> list[Score]:
        found = []
        for start in range(0, 128, 16):
            some = range(start, start + 16)
            found += score([one for at in some for one in group([texts[at][member]], problem=f"p{at}")])
        return found

    with ThreadPoolExecutor(8) as threads:
        columns = list(threads.map(one_member, range(8)))
    for member, column in enumerate(columns):
        assert [("ok", pytest.approx(member / 100), "")] * 128 == [
            (one.status, one.value, one.reason) for one in column
        ]
    judged = Counter(frozenset(shown(body)) for body in asked(comparing))
    assert Counter(map(frozenset, texts)) == judged


def test_member_that_never_arrives(comparing: FaultServer) -> None:
    """After `group_wait` those present are judged if they are half of the group; later ones have failed."""
    register(comparing, group_size=8, group_wait=0.2, orders=1)  # expires
    scores = score(group(EIGHT[:7]), on_error="none")
    assert [("ok", "7 of 8 members")] * 7 == [(one.status, one.reason) for one in scores]
    (late,) = score(group(EIGHT[7:]), on_error="none")
    assert "failed" == late.status and None is late.value
    too_few = score(group(EIGHT[:3], problem="another"), on_error="none")
    assert [("failed", "3 of 8 members of its group arrived within 0.2 s")] * 3 == [
        (one.status, one.reason) for one in too_few
    ]
    assert [7] == [len(shown(body)) for body in asked(comparing)]


def test_late_members_do_not_wait(comparing: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that arrives after its incomplete group was judged does not wait for others."""
    monkeypatch.setattr(groups, "time", SimpleNamespace(monotonic=lambda: 0.0))
    register(comparing, group_size=2, group_wait=0.1, orders=1)  # expires
    (alone,) = score(group(EIGHT[:1]), on_error="none")
    assert "1 of 2 members of its group arrived within 0.1 s" == alone.reason
    late = score(group(EIGHT[1:3]), on_error="none")
    assert {("failed", "the sample arrived after its group was closed; raise group_wait")} == {
        (one.status, one.reason) for one in late
    }
    assert [] == asked(comparing)


def test_full_groups_of_one_problem(comparing: FaultServer) -> None:
    """A complete group ends: further samples of the same problem are the next one."""
    register(comparing, group_size=4, group_wait=50, orders=1)
    assert ["ok"] * 8 == [one.status for one in score(group(EIGHT))]
    assert ["ok"] * 4 == [one.status for one in score(group(EIGHT[:4]))]
    assert [set(EIGHT[:4]), set(EIGHT[4:]), set(EIGHT[:4])] == [{*shown(body)} for body in asked(comparing)]


def test_rollout_seen_twice(comparing: FaultServer) -> None:
    """A sample replaces the waiting one with its `rollout_index`; both get the score of what is judged."""
    register(comparing, group_size=2, group_wait=50, orders=1)
    first, again = (group([text], rollout_index=0) for text in ("It is 10.", "It is 90."))
    old, new, other = score([*first, *again, *group(["It is 50."], rollout_index=1)])
    assert (0.9, 0.9, 0.5) == (old.value, new.value, other.value)
    assert [{"It is 90.", "It is 50."}] == [{*shown(body)} for body in asked(comparing)]


async def test_cancelled_callers(comparing: FaultServer) -> None:
    """Members whose callers gave up, before or while their group is judged, keep nobody else waiting."""
    for delay, wait in ((0.0, 0.5), (0.3, 50)):
        name = f"wait{wait:g}"
        register(comparing, name=name, group_size=8, group_wait=wait, orders=1)
        gone = asyncio.create_task(ascore(group(EIGHT[:4], source=name)))
        await asyncio.sleep(delay)
        gone.cancel()
        stay = await ascore(group(EIGHT[4:], source=name), on_error="none")
        assert ["ok"] * 4 == [one.status for one in stay], stay[0].reason
        with pytest.raises(asyncio.CancelledError):
            await gone


def test_timeout_of_a_member(comparing: FaultServer) -> None:
    """A member that waits less long than its group fails by itself, and says how many are there."""
    register(comparing, group_size=8, group_wait=50)
    impatient = group(EIGHT[:1], timeout=0.2)  # expires
    (one,) = score(impatient, on_error="none")
    assert "no answer within 0.2 s; 1 of 8 members of its group have arrived" == one.reason


@pytest.mark.parametrize("wait", [30, 30.5])
def test_wait_that_is_too_long(comparing: FaultServer, monkeypatch: pytest.MonkeyPatch, wait: float) -> None:
    """A group cannot wait for as long as the judge may take."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", "30")
    register(comparing, group_size=8, group_wait=wait)
    with pytest.raises(RouteError, match=r"judges.ruler.group_wait: must be less than .*_TIMEOUT=30 s, got 30"):
        score(group(EIGHT))


@pytest.mark.nightly
def test_memory(comparing: FaultServer) -> None:
    """Groups leave nothing behind, complete or not."""
    register(comparing, "pairwise", group_size=2, group_wait=0.05)  # expires
    counts = []
    for start in range(0, 10_000, 1000):
        some = range(start, start + 1000)
        pairs = [one for at in some for one in group(["It is 1."] * 2, problem=f"p{at}")]
        found = score([*pairs, *group(["It is 1."], problem=f"half {start}")], on_error="none")
        assert {0.5} == {*values(found)[:-1]}
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[-1] - counts[2] < 3000, counts
    assert [] == asked(comparing)
