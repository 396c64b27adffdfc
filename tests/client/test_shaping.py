"""`scale`, `shift` and `clip` of routes, and routes whose values go below 0."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client, compute_score, register_route, score
from rewardstack.errors import ConfigError, RouteError, ScoringError
from rewardstack.routing.routes import RouteTable, builtin_routes
from rewardstack.routing.syntax import definition, parse_route
from tests.support.explaining import explained
from tests.support.table import Table

RIGHT, WRONG = ("#### 42", "42"), ("#### 41", "42")
LIMITS = {"max_response_length": 100, "overlong_buffer": 50}


@pytest.fixture(autouse=True)
def no_routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test registers its own routes, and rules run in this process."""
    monkeypatch.setattr(client, "_registered", {})
    monkeypatch.delenv("REWARD_SERVER_URL", raising=False)
    yield


SHAPED: list[tuple[dict[str, Any], float, float]] = [
    ({"scale": 2}, 2.0, 0.0),
    ({"shift": -0.5}, 0.5, -0.5),
    ({"scale": 2, "shift": -1}, 1.0, -1.0),
    ({"scale": -1}, -1.0, 0.0),
    ({"clip": [0.25, 0.75]}, 0.75, 0.25),
    ({"scale": 10, "shift": -5, "clip": [-1, 1]}, 1.0, -1.0),
]


def test_values(table: Table) -> None:
    """A value is scaled, then shifted, then clipped."""
    for number, (fields, right, wrong) in enumerate(SHAPED):
        with table.case(str(fields)):
            register_route(f"shaped_{number}", {"route": "gsm8k", **fields})
            assert (right, wrong) == tuple(compute_score(f"shaped_{number}", *sample) for sample in (RIGHT, WRONG))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"scale": 0}, "scale must not be 0"),
    ({"scale": "2"}, "scale must be a finite number, got '2'"),
    ({"shift": math.nan}, "shift must be a finite number"),
    ({"clip": [1, 0]}, "clip must begin with the lower bound"),
    ({"clip": 1}, r"clip must be two numbers"),
    ({"clip": [0, math.inf]}, "clip must be a finite number"),
    ({"scael": 2}, "scael is not known"),
]


def test_refused(table: Table) -> None:
    """A field that cannot be used is refused with its name and value."""
    for fields, message in REFUSED:
        with table.case(str(fields)), pytest.raises(RouteError, match=f"^route 'mine', {message}"):
            parse_route("mine", {"route": "gsm8k", **fields})


def test_definition() -> None:
    """A shaped route is shown as it was written."""
    spec = {"sum": [{"route": "gsm8k", "weight": 2.0}], "on_part_error": "fail", "scale": 2.0, "clip": [0.0, 3.0]}
    assert spec == definition(parse_route("mine", spec))


def test_thresholds_are_of_shaped_values() -> None:
    """A gate above a shaped route compares the shaped value, and parts show it."""
    register_route("percent", {"route": "gsm8k", "scale": 100})
    register_route("gated", {"gate": {"route": "percent", "at_least": 50}, "then": "percent"})
    [one] = score([Request("gated", *RIGHT)])
    assert (100.0, {"percent": 100.0}) == (one.value, one.parts)


def test_cache_keeps_unshaped_values() -> None:
    """Two routes to one function share its cached score, each with a shape of its own."""
    register_route("twice", {"route": "gsm8k", "scale": 2})
    register_route("thrice", {"route": "gsm8k", "scale": 3})
    values = [score([Request(route, *RIGHT)])[0].value for route in ("twice", "thrice", "twice", "gsm8k")]
    assert [2.0, 3.0, 2.0, 1.0] == values


def test_explained() -> None:
    """An explanation has the shaping as a step, with the value that comes of it."""
    register_route("twice", {"route": "gsm8k", "scale": 2})
    steps = explained(Request("twice", *RIGHT)).steps
    [shaped] = [step for step in steps if step.name == "shaped"]
    assert {"scale": 2.0, "value": 2.0} == dict(shaped.facts)


BELOW_ZERO: list[dict[str, Any]] = [
    {"route": "gsm8k", "shift": -1},
    {"route": "gsm8k", "scale": -1},
    {"sum": ["gsm8k", {"route": "length", "weight": -0.5}]},
    {"gate": "gsm8k", "then": "gsm8k", "else": -1},
    {"route": "overlong"},
    {"sum": ["gsm8k", "overlong"]},
    {"majority": ["gsm8k", "overlong"]},
    {"cascade": [{"route": "gsm8k", "at_least": 1}, "overlong"]},
]
NOT_BELOW: list[dict[str, Any]] = [
    {"route": "gsm8k", "scale": 2},
    {"route": "overlong", "shift": 1, "clip": [0, 1]},
    {"sum": ["gsm8k", "overlong"], "clip": [0, 1]},
    {"route": "rule_remote_mine"},
    {"route": "llm_judge_remote", "scale": 10},
]


def table_of(fields: dict[str, Any]) -> RouteTable:
    """The built-in routes and one named `mine`."""
    return RouteTable([*builtin_routes(), parse_route("mine", fields)])


def test_a_lost_part_counts(table: Table) -> None:
    """A sum that is below 0 only without one of its parts can go below 0, unless that part's failure fails the sum."""
    high = parse_route("high", {"route": "gsm8k", "shift": 2, "clip": [2, 3]})
    low = parse_route("low", {"route": "overlong", "clip": [-1, 0.5]})
    for policy, bounds in (("fail", (1.0, 3.0)), ("zero", (-1.0, 3.0)), ("skip", (-2.0, 6.0))):
        with table.case(policy):
            routes = [high, low, parse_route("mine", {"sum": ["high", "low"], "on_part_error": policy})]
            assert RouteTable([*builtin_routes(), *routes]).bounds("mine") == bounds


def test_zero_is_refused_below_zero(table: Table) -> None:
    """`on_error = zero` is refused where the route has values below 0, and only there."""
    for fields in BELOW_ZERO:
        with table.case(str(fields)), pytest.raises(RouteError, match="^route 'mine', on_error: .* raise or none"):
            table_of({**fields, "on_error": "zero"}).check_policies()
    for fields in NOT_BELOW:
        with table.case(str(fields)):
            table_of({**fields, "on_error": "zero"}).check_policies()


def test_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A routes file with such a policy is refused at the first call, with route and field."""
    file = tmp_path / "routes.json"
    file.write_text(json.dumps({"routes": {"mine": {"route": "gsm8k", "shift": -1, "on_error": "zero"}}}))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(file))
    with pytest.raises(RouteError, match="^route 'mine', on_error: its scores can be as low as -1"):
        compute_score("gsm8k", *RIGHT)


def test_default_below_zero_is_raise() -> None:
    """A sample without a score raises where 0 would be a good one, unless the route or the call says `none`."""
    register_route("signed", {"route": "gsm8k", "scale": 2, "shift": -1})
    with pytest.raises(ScoringError, match="the reference"):
        compute_score("signed", RIGHT[0], None)
    assert compute_score("signed", RIGHT[0], None, on_error="none") is None
    with pytest.raises(ConfigError, match="^on_error: scores of route 'signed' can be below 0"):
        compute_score("signed", RIGHT[0], None, on_error="zero")
    with pytest.raises(ScoringError):
        compute_score("signed", RIGHT[0], None, on_error="lexical")
    register_route("hushed", {"route": "signed", "on_error": "none"})
    assert compute_score("hushed", RIGHT[0], None) is None


def test_candidate_is_never_at_fault_for_the_policy() -> None:
    """A response without an answer has a value of its own, however the policy is."""
    register_route("signed", {"route": "gsm8k", "scale": 2, "shift": -1})
    assert -1.0 == compute_score("signed", "I do not know.", "42")


def test_overlong_needs_tokens() -> None:
    """`overlong` raises where no sample of a call says how many tokens it has, and scores those that do."""
    register_route("dapo", {"sum": ["gsm8k", "overlong"], "on_error": "none"})
    bare = [Request("dapo", *RIGHT, LIMITS)] * 2
    with pytest.raises(ConfigError, match="completion_tokens"):
        score(bare)
    counted = Request("dapo", *RIGHT, {**LIMITS, "completion_tokens": 75})
    assert [0.5, None] == [one.value for one in score([counted, bare[0]])]
