"""Which route takes a `data_source`, how routes are registered, and what is said of those that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rewardstack import client, register_route, score
from rewardstack.client import route_table
from rewardstack.errors import RouteError, UnknownSourceError
from rewardstack.routing.routes import RULES, Leaf, RouteTable, builtin_routes, part_routes
from rewardstack.routing.syntax import load_routes, parse_route
from rewardstack.score import Request
from rewardstack.settings import Settings
from tests.support.servers import FaultServer
from tests.support.table import Table

ROOT = Path(__file__).resolve().parents[2]
CASES = json.loads((ROOT / "tests" / "cases" / "routes.json").read_text())


@pytest.fixture(autouse=True)
def no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test registers its own routes."""
    monkeypatch.setattr(client, "_registered", {})


def with_routes(routes: dict[str, Any]) -> RouteTable:
    """The built-in routes and further ones."""
    return RouteTable([*builtin_routes(), *(parse_route(name, spec) for name, spec in routes.items())])


def test_longest_prefix(table: Table) -> None:
    """A source belongs to the longest route name that it is, or begins with before an underscore."""
    for case in CASES["found"]:
        with table.case(case["source"]):
            routes = with_routes(dict.fromkeys(CASES["extra_routes"], "math"))
            assert case["route"] == routes.find(case["source"]).name


def test_misspelled_longer_name(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """A source that a shorter name takes because a longer one is misspelled is scored, and named in one warning."""
    routes = with_routes(dict.fromkeys(("safety", "safety_code", "llm_judge_remote_helpful"), "gsm8k"))
    meant = {
        "math_verifer": ("math", "math_verifier"),
        "math_verifierr": ("math", "math_verifier"),
        "math_veriifer": ("math", "math_verifier"),
        "safety_cod": ("safety", "safety_code"),
        "llm_judge_remote_helpfull": ("llm_judge_remote", "llm_judge_remote_helpful"),
    }
    for source, (route, right) in meant.items():
        with table.case(source):
            caplog.clear()
            assert [routes.find(source).name, routes.find(source).name] == [route, route]
            assert caplog.messages == [f"data_source {source!r} is scored by route {route!r}: did you mean {right!r}?"]
    caplog.clear()
    for source in ("math", "math_verifier", "math_verifier_aime", "math_dapo", "math_train", "gsm8k_train", "aime2024"):
        routes.find(source)
    assert caplog.messages == []


@pytest.mark.parametrize("source", CASES["unknown"])
def test_unknown_source(source: str) -> None:
    """A source that no route takes is an error that lists every route there is."""
    with pytest.raises(
        UnknownSourceError, match=f"^data_source '{source}' has no route; (did you mean '.+'\\? )?available: "
    ) as caught:
        with_routes({"my_own": "math"}).find(source)
    listed = str(caught.value).partition("available: ")[2].partition(";")[0].split(", ")
    assert sorted([*RouteTable(builtin_routes()).names(), "my_own"]) == listed
    assert {*RULES, "rule_remote_*", "llm_judge_remote*"} <= set(listed)


def test_data_sources_of_verl(table: Table) -> None:
    """The names of verl's own data sets lead to the reward function that fits, without a routes file."""
    for case in CASES["verl"]:
        with table.case(case["source"]):
            target = RouteTable(builtin_routes()).find(case["source"]).target
            assert Leaf("rule", case["rule"]) == target


@pytest.mark.parametrize("name", ["openai/gsm8k", "aime"])
def test_custom_route_replaces_verls(name: str) -> None:
    """A custom route replaces the one for a data set of verl's, but only once."""
    register_route(name, {"sum": ["exact_match"]})
    assert ("exact_match",) == part_routes(route_table(Settings.from_env()).find(name).target)  # type: ignore[arg-type]
    with pytest.raises(RouteError, match="is defined twice"):
        register_route(name, "math")


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("GSM8K", "did you mean 'gsm8k'?"),
        ("llm_judge_remot", "did you mean 'llm_judge_remote'?"),
        ("gms8k_train", "did you mean 'gsm8k'?"),
        ("gsm8k-train", "did you mean 'gsm8k'?"),
        ("judge", "did you mean 'llm_judge_remote'?"),
        ("mentions", "for your own reward function 'mentions' (REWARD_FUNCTIONS), use 'rule_remote_mentions'"),
    ],
)
def test_suggestion_for_an_unknown_source(source: str, hint: str) -> None:
    """The error about an unknown source has the nearest name, and how your own reward functions are named."""
    with pytest.raises(UnknownSourceError, match=re.escape(hint)):
        RouteTable(builtin_routes()).find(source)


def test_unknown_part() -> None:
    """A composite with a part that no route takes is named by that part when it is first used."""
    with pytest.raises(UnknownSourceError, match="'mth' has no route; did you mean 'math'\\? available: "):
        with_routes({"mine": {"sum": ["math", "mth"]}}).find("mine")


@pytest.mark.parametrize("case", CASES["circles"], ids=lambda case: case["path"])
def test_circle(case: dict[str, Any]) -> None:
    """A route that leads back to itself is an error that shows the way."""
    with pytest.raises(RouteError, match=f"contains itself: .*{case['path']}$"):
        with_routes(case["routes"]).find(case["find"])


def test_one_part_twice_is_no_circle() -> None:
    """Two ways to the same part are no circle."""
    routes = with_routes({"a": {"sum": ["b", "c"]}, "b": "math", "c": {"gate": "b", "then": "math"}})
    assert "a" == routes.find("a").name


def test_malformed_route(table: Table) -> None:
    """A malformed definition is refused; the message names the route, the field and what is wrong with it."""
    for case in CASES["malformed"]:
        with table.case(json.dumps(case["spec"])):
            with pytest.raises(RouteError) as caught:
                parse_route("mine", case["spec"])
            assert str(caught.value).startswith("route 'mine'")
            assert case["message"] in str(caught.value)
            assert case["field"] == caught.value.field


@pytest.mark.parametrize("name", ["", None, 7], ids=repr)
def test_route_without_a_name(name: Any) -> None:
    """A route needs a name."""
    with pytest.raises(RouteError, match="a route's name must be a non-empty string"):
        register_route(name, "math")


def test_builtin_routes_are_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client knows by name the reward functions that every reward server has, no more and no fewer."""
    from rewardstack_rules.functions.builtin import built_in_rules

    assert sorted(rule.name for rule in built_in_rules()) == sorted(RULES)


def test_registered_route() -> None:
    """A registered route is in force at once, beside the built-in ones."""
    register_route("mine", {"sum": ["math"]})
    assert "mine" == route_table(Settings.from_env()).find("mine_1").name


@pytest.mark.parametrize("name", ["math", "mine"])
def test_route_registered_twice(name: str) -> None:
    """A name that is taken, by a built-in route or by another, is refused, and the first one stays."""
    register_route("mine", "math")
    why = "is built-in; choose another name" if name == "math" else "is defined twice; rename one"
    with pytest.raises(RouteError, match=f"^route '{name}' {why}$"):
        register_route(name, "gsm8k")
    assert ("math",) == part_routes(route_table(Settings.from_env()).find("mine").target)  # type: ignore[arg-type]


def test_malformed_route_is_not_registered() -> None:
    """A definition that is refused leaves nothing behind."""
    with pytest.raises(RouteError):
        register_route("mine", {"sum": []})
    with pytest.raises(UnknownSourceError):
        route_table(Settings.from_env()).find("mine")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("routes.toml", '[routes]\n"my/gsm8k" = "gsm8k"\n[routes.mine]\nsum = ["math"]\non_error = "none"\n'),
        ("routes.json", '{"routes": {"my/gsm8k": "gsm8k", "mine": {"sum": ["math"], "on_error": "none"}}}'),
    ],
)
def test_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """A file adds its routes, in TOML or in JSON."""
    (tmp_path / name).write_text(text)
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / name))
    routes = route_table(Settings.from_env())
    assert {"mine", "my/gsm8k"} == {route.name for route in routes} - {route.name for route in builtin_routes()}
    assert "none" == routes.find("mine").on_error


@pytest.mark.parametrize("case", CASES["files"], ids=lambda case: case["message"])
def test_malformed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]) -> None:
    """A file that cannot be used is named, with what is wrong in it, by the first call that needs it."""
    path = tmp_path / case["name"]
    if case["text"] is not None:
        path.write_text(case["text"])
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(path))
    with pytest.raises(RouteError) as caught:
        score([Request("math", "a", "1")])
    assert str(path) in str(caught.value)
    assert case["message"] in str(caught.value)


def test_file_against_what_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route cannot stand in the file and be registered, too."""
    (tmp_path / "routes.toml").write_text('routes.mine = "math"')
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.toml"))
    register_route("mine", "gsm8k")
    with pytest.raises(RouteError, match="^route 'mine' is defined twice"):
        score([Request("mine", "a", "1")])


def test_shipped_example() -> None:
    """Every route of the shipped example is valid, and so are the routes that it consists of."""
    routes = RouteTable([*builtin_routes(), *load_routes(str(ROOT / "examples" / "routes.toml"))])
    assert {"small", "large"} == routes.judges.keys()
    assert {"Cascade", "Gate", "Majority", "WeightedSum"} == {
        type(routes.find(route.name).target).__name__ for route in routes if not isinstance(route.target, Leaf)
    }


@pytest.mark.parametrize(("on_error", "value"), [("zero", 0.0), ("lexical", 0.0), ("none", None)])
def test_policy_of_a_route(server: FaultServer, on_error: str, value: float | None) -> None:
    """A route's own error policy decides the value of a sample without a score, unless the call says otherwise."""
    server.set(mode="400")
    register_route("mine", {"route": "math", "on_error": on_error})
    request = Request("mine", f"under a route's {on_error}", "1")
    assert (value, "failed") == ((one := score([request])[0]).value, one.status)
    assert (None, "failed") == ((one := score([request], on_error="none")[0]).value, one.status)


def test_several_files(tmp_path: Path) -> None:
    """Files that are separated by colons are one table of routes, which a route of one may be made of another's."""
    files = [tmp_path / "one.toml", tmp_path / "other.json"]
    files[0].write_text('[routes]\nmine = "theirs"\n')
    files[1].write_text('{"routes": {"theirs": "math"}, "judges": {"small": {"model": "m"}}}')
    settings = Settings.from_env({"REWARDSTACK_ROUTES": ":".join(map(str, files))})
    assert {"mine", "theirs", "small"} <= {*route_table(settings).names()}
    files[0].write_text('[routes]\nsmall = "math"\n')
    with pytest.raises(RouteError, match="^route 'small' is defined twice"):
        route_table(settings)
