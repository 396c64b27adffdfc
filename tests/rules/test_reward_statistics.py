"""Statistics of rewards by route, as `/metrics` and `/v1/status` report them over all processes of a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY, generate_latest

from rewardstack.core.reward_summary import group_of
from rewardstack.score import Request
from rewardstack_rules.metrics import groups as table
from rewardstack_rules.metrics.batch import Rewards
from rewardstack_rules.metrics.groups import Groups
from rewardstack_rules.metrics.rewards import bucket_bounds, count_rewards
from tests.rules.conftest import RewardServer, running
from tests.rules.test_operations import metric
from tests.rules.test_status import told

RIGHT = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
WRONG = {**RIGHT, "solution_str": "#### 2"}
SAME, OTHER = ({**one, "data_source": "rule_remote_exact_match", "ground_truth": "#### 1"} for one in (RIGHT, WRONG))
BOXED = {"data_source": "math", "solution_str": "\\boxed{1}", "ground_truth": "1"}
FUNCTIONS = """
from rewardstack_rules import reward_function

@reward_function(range=(-1.0, 1.0))
def signed(response): return float(response)

@reward_function
def open_ended(response): return float(response)

@reward_function
def many_parts(response): return {"score": 1.0, **{f"p{i}_{response}": 0.5 for i in range(30)}}
"""
ROUTES = {
    "routes": {
        "mixed": {"sum": [{"route": "gsm8k", "weight": 0.7}, {"route": "rule_remote_signed", "weight": 0.3}]},
        "shaped": {"route": "gsm8k", "scale": 2, "shift": -1, "on_error": "none"},
    }
}


@pytest.fixture(scope="module")
def own(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server of two processes, with functions and routes of its own; each test asks for other ones."""
    folder = tmp_path_factory.mktemp("own")
    (functions := folder / "own.py").write_text(FUNCTIONS)
    (routes := folder / "routes.json").write_text(json.dumps(ROUTES))
    with running(folder, "--workers", "2", REWARD_FUNCTIONS=functions, REWARDSTACK_ROUTES=routes) as server:
        yield server


def rewards(server: RewardServer, route: str) -> dict[str, Any]:
    """The figures of a route over the last hour."""
    [one] = [one for one in told(server)["routes"] if one["route"] == route]
    assert one["rewards"]["hour"] == one["rewards"]["total"]
    hour: dict[str, Any] = one["rewards"]["hour"]
    return hour


def signed(*values: float, rule: str = "signed", **extra: Any) -> list[dict[str, Any]]:
    return [
        {"data_source": f"rule_remote_{rule}", "solution_str": str(v), "ground_truth": "x", **extra} for v in values
    ]


def test_figures(own: RewardServer) -> None:
    """Mean, deviation, histogram, zeros and maxima are those of the values; samples without a score do not count."""
    for value in (-1.0, -0.5, 0.0, 1.0, 1.0):
        own.score(*signed(value))
    own.score(*signed(0.0)[:1], {"data_source": "rule_remote_signed", "solution_str": "no number", "ground_truth": "x"})

    found = rewards(own, "rule:signed")

    assert (found["count"], found["zeros"], found["maxima"]) == (6, 2, 2)
    assert found["mean"] == pytest.approx(0.5 / 6, abs=1e-6) and found["std"] == pytest.approx(0.731247, abs=1e-6)
    assert found["histogram"] == [
        [-1.0, 1], [-0.8, 0], [-0.6, 0], [-0.4, 1], [-0.2, 0], [0.0, 2], [0.2, 0], [0.4, 0], [0.6, 0], [0.8, 0],
        [1.0, 2], [None, 0],
    ]  # fmt: skip


def test_metrics(own: RewardServer) -> None:
    """Prometheus gets the same as counts that only grow, those of a process that has ended included."""
    own.score(RIGHT, RIGHT, WRONG)
    text = own.get("/metrics").text

    assert metric(text, 'rewardstack_reward_bucket{le="0.0",route="rule:gsm8k"}') == 1
    assert metric(text, 'rewardstack_reward_bucket{le="+Inf",route="rule:gsm8k"}') == 3
    assert metric(text, 'rewardstack_reward_positive_total{route="rule:gsm8k"}') == 2
    assert metric(text, 'rewardstack_reward_maxima_total{route="rule:gsm8k"}') == 2


def test_cached(own: RewardServer) -> None:
    """A score from the cache counts as one that was computed."""
    for _ in range(3):
        own.score(BOXED, BOXED)

    assert rewards(own, "rule:math")["count"] == 6


def test_composite_and_shaped(own: RewardServer) -> None:
    """A route that combines or shapes counts under its own name, after shaping, with its parts and its own range."""
    own.score(*({**one, "data_source": "shaped"} for one in (RIGHT, WRONG)))
    own.score(*({**RIGHT, "data_source": "mixed", "solution_str": text} for text in ("1", "0.5")))

    shaped, mixed = rewards(own, "shaped"), rewards(own, "mixed")

    assert (shaped["count"], shaped["mean"], shaped["maxima"]) == (2, 0.0, 1)
    assert mixed["parts"] == {"gsm8k": 0.5, "rule_remote_signed": 0.75}
    assert (mixed["maxima"], mixed["histogram"][0][0], mixed["histogram"][-2][0]) == (1, -0.3, 1.0)


def test_unbounded(own: RewardServer) -> None:
    """A function without a range has buckets from -20 to 20 and no maximum, and a huge value spoils no sum."""
    own.score(*signed(1e300, -1e300, 3.0, rule="open_ended"))

    found = rewards(own, "rule:open_ended")

    assert (found["maxima"], found["count"], found["mean"]) == (None, 3, 1.0)
    assert found["histogram"][0] == [-20.0, 1] and found["histogram"][-1] == [None, 1]


def test_names_of_parts_are_bounded(own: RewardServer) -> None:
    """A function that returns other parts for every sample does not add a series for each."""
    for at in range(5):
        own.score(*signed(at, rule="many_parts"))

    lines = [line for line in own.get("/metrics").text.splitlines() if "rewardstack_reward_part_samples_total{" in line]
    assert 0 < sum('route="rule:many_parts"' in line for line in lines) <= 2 * 16


def test_groups_over_processes(own: RewardServer) -> None:
    """Samples of one group are one group, whichever process scores them: one learns nothing from a third of these."""
    for _ in range(4):
        own.score({**SAME, "extra_info": {"group_id": "flat"}})
        own.score({**OTHER, "extra_info": {"group_id": "flat too"}}, {**OTHER, "extra_info": {"group_id": "alone"}})
        for one in (SAME, OTHER):
            own.score({**one, "extra_info": {"group_id": "spread"}})
    own.score({**SAME, "extra_info": {"group_id": "one sample"}})

    found = rewards(own, "rule:exact_match")

    assert (found["groups"], found["groups_without_spread"]) == (4, 3)


def test_group_of() -> None:
    """The id decides, else source, problem and references; a tenant never shares a group, and no prompt is no group."""
    one = Request("math", "x", "1", {"problem": "p"})
    messages = [{"role": "user", "content": "p"}]
    same = [Request("math", "y", "1", {"prompt": messages}), Request("math", "z", "1", {"question": "p", "other": 1})]
    other = [
        Request("gsm8k", "x", "1", {"problem": "p"}),
        Request("math", "x", "2", {"problem": "p"}),
        Request("math", "x", "1", {"problem": "q"}),
        Request("math", "x", "1", {"problem": "p" * 9999}),
        Request("math", "x", "1", {"problem": "p", "group_id": 7}),
    ]

    assert {group_of(each, "") for each in same} == {group_of(one, "")}
    assert len({group_of(each, "") for each in (one, *other)}) == 6
    assert group_of(one, "tenant") != group_of(one, "")
    assert group_of(Request("math", "x"), "") is None
    ids = [Request("math", "x", str(at), {"problem": str(at), "group_id": "a"}) for at in range(2)]
    assert group_of(ids[0], "") == group_of(ids[1], "")


def test_table_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes see one table; it is bounded, and a prompt that comes again after its expiry is a new group."""
    now = [1000.0]
    monkeypatch.setattr(table.time, "monotonic", lambda: now[0])
    first, second = Groups(str(tmp_path)), Groups(str(tmp_path))
    group = bytes(16)

    assert first.add({group: [1.0]}) == (0, 0)
    assert second.add({group: [1.0]}) == (1, 0)
    assert first.add({group: [0.0]}) == (0, 1)
    now[0] += table.EXPIRY + 1
    assert first.add({group: [0.0, 0.0]}) == (1, 0)

    for at in range(1, 50):  # all in the same set of the table
        now[0] += 1
        first.add({bytes(12) + at.to_bytes(4, "big"): [0.0]})
    assert second.add({group: [1.0]}) == (0, 0)
    assert (tmp_path / table.FILE).stat().st_size == table.SETS * table.SIZE < 2**20


@pytest.mark.parametrize(
    ("bounds", "first", "last", "count"),
    [
        ((0.0, 1.0), 0.0, 1.0, 11),
        ((-1.0, 1.0), -1.0, 1.0, 11),
        ((0.0, 0.0), 0.0, 0.0, 1),
        ((0.0, float("inf")), 0.0, 20.0, 12),
        ((float("-inf"), 0.0), -20.0, 0.0, 12),
        ((float("-inf"), float("inf")), -20.0, 20.0, 23),
    ],
)
def test_buckets(bounds: tuple[float, float], first: float, last: float, count: int) -> None:
    """Buckets cover the range; an end that is infinite is at 20."""
    found = bucket_bounds(bounds)
    assert (found[0], found[-1], len(found)) == (first, last, count)


def test_examples(start: Callable[..., RewardServer], tmp_path: Path) -> None:
    """With a sample log each key is shown its own highest and lowest rewards, if it asks for them."""
    log = tmp_path / "samples.jsonl"
    keys = "first-key-of-tests,second-key-of-tests"
    variables = {"REWARDSTACK_SAMPLE_LOG": log, "REWARDSTACK_SAMPLE_LOG_SHARE": 1, "REWARD_SERVER_API_KEYS": keys}
    server = start("--workers", "2", **variables)
    first, second = ({"X-API-Key": key} for key in keys.split(","))
    server.post("/v1/score", {"items": [RIGHT, WRONG, {**RIGHT, "ground_truth": None}]}, headers=first)

    [shown] = server.get("/v1/status?examples=1", headers=first).json()["examples"]

    assert shown["route"] == "rule:gsm8k"
    assert [one["solution_str"] for one in shown["highest"]] == ["#### 1", "#### 2"]
    assert server.get("/v1/status?examples=1", headers=second).json()["examples"] == []
    assert server.get("/v1/status", headers=first).json()["examples"] == []
    assert server.get("/v1/status?examples=1").status_code == 401


def test_single_process() -> None:
    """A worker, which is one process without a directory of counts, has the histograms of all routes as one metric."""
    for route, high in (("one", 1.0), ("two", 2.0)):
        count_rewards({route: Rewards((0.0, high), [high], {}, {})})

    text = generate_latest(REGISTRY).decode()

    assert text.count("# TYPE rewardstack_reward histogram") == 1
    assert metric(text, 'rewardstack_reward_bucket{le="1.8",route="two"}') == 0
    assert metric(text, 'rewardstack_reward_bucket{le="2.0",route="two"}') == 1
    assert metric(text, 'rewardstack_reward_bucket{le="1.0",route="one"}') == 1
