"""Routes made of routes, from end to end: on a real reward server, with parts that fail or leave a sample unscored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, client, register_route, score
from rewardstack.errors import ScoringError
from tests.rules.conftest import RewardServer, running
from tests.support.explaining import explained
from tests.support.servers import FaultServer, fault_server
from tests.support.table import Table

HERE = Path(__file__).resolve().parent
CASES = json.loads((HERE.parent / "cases" / "composites.json").read_text())
ROUTES, SAMPLES = CASES["routes"], CASES["samples"]
BELOW_ZERO = ("penalty", "gate", "gate_zero", "gate_skip")
"""Routes with values below 0."""


@pytest.fixture(scope="module")
def routes_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the table's routes."""
    path = tmp_path_factory.mktemp("routes") / "routes.json"
    path.write_text(json.dumps({"routes": ROUTES}))
    return path


@pytest.fixture(scope="module")
def reward_server(
    needs_process: None, tmp_path_factory: pytest.TempPathFactory, routes_file: Path
) -> Iterator[RewardServer]:
    """A real reward server with the scripted functions, and with the table's routes, too."""
    with running(
        tmp_path_factory.mktemp("server"),
        *("--workers", "1"),
        REWARD_FUNCTIONS=HERE / "scripted_rewards.py",
        REWARDSTACK_ROUTES=routes_file,
        REWARD_CACHE_ITEMS=0,
    ) as one:
        yield one


@pytest.fixture(scope="module")
def scored(reward_server: RewardServer, routes_file: Path) -> list[Score]:
    """Every sample of the table, scored in one call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_registered", {})
        patch.setenv("REWARD_SERVER_URL", reward_server.url)
        patch.setenv("REWARDSTACK_ROUTES", str(routes_file))
        patch.setenv("REWARD_CACHE_ITEMS", "0")
        return score([Request(case["route"], json.dumps(case["outcomes"])) for case in SAMPLES], on_error="none")


@pytest.fixture(autouse=True)
def no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test registers its own routes."""
    monkeypatch.setattr(client, "_registered", {})


def describe(case: dict[str, Any]) -> str:
    """A case's name."""
    return " ".join([case["route"], *map(str, case["outcomes"].values())])


def test_composite(scored: list[Score], table: Table) -> None:
    """A composite has the value, status, reason and parts that `docs/routing.md` promises for its parts' outcomes."""
    for case, one in zip(SAMPLES, scored, strict=True):
        with table.case(describe(case)):
            assert (case["value"], case["status"]) == (one.value, one.status)
            assert case.get("reason", "") in one.reason
            assert case.get("parts", one.parts) == one.parts


def test_composite_in_the_server(reward_server: RewardServer, scored: list[Score]) -> None:
    """The reward server comes to the same outcomes over HTTP; no value is 0, or null where 0 may be a good score."""
    items = [{"data_source": case["route"], "solution_str": json.dumps(case["outcomes"])} for case in SAMPLES]
    replies = reward_server.score(*items)
    none = [None if case["route"] in BELOW_ZERO else 0.0 for case in SAMPLES]
    assert [
        (missing if one.value is None else one.value, one.status, one.reason)
        for one, missing in zip(scored, none, strict=True)
    ] == [(reply["value"], reply["status"], reply["reason"]) for reply in replies]


def test_composite_explained(
    reward_server: RewardServer, routes_file: Path, scored: list[Score], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explanation comes to the same outcomes, whichever parts fail."""
    monkeypatch.setenv("REWARD_SERVER_URL", reward_server.url)
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes_file))
    for case, one in zip(SAMPLES, scored, strict=True):
        found = explained(Request(case["route"], json.dumps(case["outcomes"])), on_error="none").score
        assert found is not None
        assert (found.value, found.status, found.reason, found.parts) == (one.value, one.status, one.reason, one.parts)


@pytest.mark.parametrize("route", ["sum", "gate", "cascade"])
def test_every_kind_meets_every_outcome(route: str) -> None:
    """The table has a success, a failing part and an unscored part for each kind of route."""
    assert {"ok", "failed", "unscored"} <= {case["status"] for case in SAMPLES if case["route"] == route}


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"sum": ["math", "gsm8k"]}, 4),
        ({"gate": {"route": "math", "at_least": 20}, "then": "gsm8k"}, 3),
        ({"cascade": [{"route": "math", "at_least": 20}, "gsm8k"]}, 3),
        ({"cascade": ["math", "gsm8k"]}, 2),
    ],
    ids=["sum", "gate", "cascade", "decided at once"],
)
def test_what_is_asked(server: FaultServer, spec: dict[str, Any], asked: int, request: pytest.FixtureRequest) -> None:
    """A gate asks its second part only about what passed, a cascade a later part only about what is still open."""
    register_route("mine", spec)
    kind = request.node.callspec.id
    score([Request("mine", kind[:4]), Request("mine", f"more than twenty characters for the {kind}")])
    assert asked == server.stats()["items"]


@pytest.mark.parametrize(
    ("on_part_error", "outcome"),
    [("fail", (None, "failed")), ("zero", (9.0, "fallback")), ("skip", (18.0, "fallback"))],
)
def test_part_whose_server_is_gone(server: FaultServer, on_part_error: str, outcome: tuple[float | None, str]) -> None:
    """One part is known from the cache, the other's server is gone: the whole is what `on_part_error` says of it."""
    solution = f"{on_part_error:9}"
    assert 9.0 == score([Request("math", solution)])[0].value
    server.kill()
    register_route("mine", {"sum": ["math", "gsm8k"], "on_part_error": on_part_error})
    missed = {"timeout": 0.3}  # expires: the server is gone
    (one,) = score([Request("mine", solution, None, missed)], on_error="none")
    assert outcome == (one.value, one.status)
    assert one.reason.startswith("gsm8k: ")


FAILING = {
    "sum": {"sum": ["math", "gsm8k"], "on_part_error": "zero"},
    "gate": {"gate": "math", "then": "gsm8k"},
    "cascade": {"cascade": ["math", "gsm8k"], "on_part_error": "skip"},
}


@pytest.mark.usefixtures("needs_process")
def test_server_that_fails(monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """However the server fails, a composite none of whose parts has a value is `failed`, never a score."""
    for kind, spec in FAILING.items():
        register_route(kind, spec)
    for mode, kind in product(("400", "500", "garbage", "short", "drop", "hang"), FAILING):
        with table.case(f"{mode} {kind}"), fault_server() as server:
            monkeypatch.setenv("REWARD_SERVER_URL", server.url)
            server.set(mode=mode)
            missed = {"timeout": 0.3}  # expires where the fault is not final
            (one,) = score([Request(kind, f"{mode} {kind}", None, missed)], on_error="none")
            assert (None, "failed") == (one.value, one.status)


def test_policy_of_a_composite(server: FaultServer) -> None:
    """A composite's own policy holds for the whole; its parts' policies do not hold for the parts."""
    server.set(mode="400")
    register_route("part", {"route": "math", "on_error": "raise"})
    register_route("mine", {"sum": ["part"], "on_error": "none"})
    register_route("strict", {"sum": ["part"], "on_error": "raise"})
    assert [None, 0.0] == [
        score([Request("mine", "of a composite")])[0].value,
        score([Request("mine", "of a composite")], on_error="zero")[0].value,
    ]
    with pytest.raises(ScoringError, match="part: "):
        score([Request("strict", "of a composite")])


def test_cached_parts(server: FaultServer) -> None:
    """A composite is cached when all that it asked is."""
    register_route("mine", {"sum": ["math", "gsm8k"]})
    score([Request("math", "part of a sum")])
    assert [False, True] == [score([Request("mine", "part of a sum")])[0].cached for _ in range(2)]


def test_time_of_a_composite(server: FaultServer) -> None:
    """A composite's latency is that of all it asked, one after the other where it asks so."""
    server.set(delay=0.2)
    register_route("mine", {"gate": "math", "then": "gsm8k"})
    (one,) = score([Request("mine", "takes its time")])
    assert (14.0, True) == (one.value, one.latency_ms >= 400)


@pytest.mark.parametrize(
    "spec",
    [{"gate": "math", "then": "gsm8k"}, {"cascade": [{"route": "math", "at_least": 99}, "gsm8k"]}],
    ids=["gate", "cascade"],
)
def test_limit_of_a_call(server: FaultServer, spec: dict[str, Any]) -> None:
    """The call's own timeout holds for all parts together: what the first has used the second does not have."""
    server.set(delay=0.3)
    register_route("mine", spec)
    (one,) = score([Request("mine", f"limited: {spec}")], timeout=0.5)  # expires: both parts together take longer
    assert "failed" == one.status
