"""What a second run says where its rows would be scored otherwise than those that OUT has."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from rewardstack.routing.judges import parse_judge
from rewardstack.routing.routes import RouteTable, builtin_routes
from rewardstack.routing.syntax import definition, definitions, judge_route, parse_route
from rewardstack.settings import Settings
from rewardstack_cli import provenance
from rewardstack_cli.provenance import list_changes, merge, server_provenance
from tests.support.snippets import assert_shown, block

from .conftest import Cli
from .samples import own, read_jsonl, read_parquet, samples, write_jsonl
from .scripted_server import Answer, scripted_server

ROWS = 12
MIXED = '[routes.mixed]\nsum = [{{ route = "gsm8k", weight = {weight} }}, "example_math"]\n'
COMPOSITES: dict[str, dict[str, Any]] = {
    "summed": {"sum": [{"route": "gsm8k", "weight": 0.5}, "math"], "on_part_error": "skip", "on_error": "none"},
    "gated": {"gate": {"route": "gsm8k", "at_least": 0.5}, "then": "math", "else": -1},
    "cascaded": {"cascade": [{"route": "exact_match", "at_least": 1}, "gsm8k"]},
    "by difficulty": {"cascade": [{"route": "small", "unsure": [0.2, 0.8], "agreement": 0.75}, "large"]},
    "voted": {"majority": ["small", "medium", "large"], "on_part_error": "zero"},
}


@pytest.fixture
def score(scoring: Cli, tmp_path: Path) -> Callable[..., Any]:
    """Scores rows of a custom route, in which `gsm8k` has a weight."""

    def run(*options: str, weight: float = 0.5, out: str = "out.jsonl", rows: int = ROWS) -> Any:
        (tmp_path / "routes.toml").write_text(MIXED.format(weight=weight))
        scoring.variables |= {"REWARDSTACK_ROUTES": "routes.toml", "REWARD_SERVER_API_KEY": "a-secret"}
        write_jsonl(tmp_path / "in.jsonl", [{**row, "data_source": "mixed"} for row in samples(rows)])
        return scoring("score", "in.jsonl", "-o", out, *options)

    return run


@pytest.mark.parametrize("kept", [ROWS, 5])
@pytest.mark.parametrize(
    ("changed", "what"),
    [({"weight": 0.25}, "the route of mixed was"), ({"on_error": "none"}, '--on-error was null, is "none"')],
)
def test_other_routes_or_options_are_told(
    score: Callable[..., Any], tmp_path: Path, kept: int, changed: dict[str, Any], what: str
) -> None:
    """OUT, complete or not, is left as it is, and the message says what has changed and what can be done."""
    assert score().status == 0
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:kept]))
    before = out.read_bytes()
    options = ("--on-error", changed["on_error"]) if "on_error" in changed else ()
    weight = changed.get("weight", 0.5)
    result = score(*options, weight=weight)
    assert result.status == 2
    assert "out.jsonl was scored differently: " + what in result.err
    assert "name another OUT, or start over with --force" in result.err
    assert out.read_bytes() == before
    assert score(*options, weight=weight, out="other.jsonl").status == 0
    assert score(*options, "--force", weight=weight).status == 0
    assert score(*options, weight=weight).status == 0
    assert read_jsonl(out) == read_jsonl(tmp_path / "other.jsonl")


def test_the_document_shows_what_is_said(score: Callable[..., Any]) -> None:
    """The message in `docs/cli.md` is what is said of another route, but for the parts of the route."""
    assert score(out="scored.jsonl").status == 0
    shown = block("docs/cli.md", "", "rewardstack: error: scored.jsonl was scored differently")
    assert_shown(shown, score(out="scored.jsonl", weight=0.25).err, r"\{.*?\}(?=, is \{|; name)")


def test_the_same_routes_go_on(score: Callable[..., Any], tmp_path: Path) -> None:
    """Rows that come later are scored; no key stands beside OUT."""
    assert score().status == 0
    assert score(rows=ROWS + 3).status == 0
    assert len(own(read_jsonl(tmp_path / "out.jsonl"))) == ROWS + 3
    kept = (tmp_path / "out.jsonl.provenance").read_text()
    assert set(json.loads(kept)["routes"]) == {"mixed", "gsm8k", "example_math"}
    assert "a-secret" not in kept


def test_parquet_tells_as_well(score: Callable[..., Any], tmp_path: Path) -> None:
    """A parquet OUT holds what its scores depended on, and leaves no file beside it."""
    assert score(out="out.parquet").status == 0
    before = read_parquet(tmp_path / "out.parquet")
    assert score(out="out.parquet").status == 0
    result = score(out="out.parquet", weight=0.25)
    assert (result.status, "the route of mixed was" in result.err) == (2, True)
    assert read_parquet(tmp_path / "out.parquet") == before
    assert {"in.jsonl", "routes.toml", "out.parquet"} == {path.name for path in tmp_path.iterdir()}


def test_an_out_that_does_not_tell_is_taken_up(score: Callable[..., Any], tmp_path: Path) -> None:
    """An OUT of an earlier version is complete as before, and a line says that nobody can know."""
    assert score().status == 0
    (tmp_path / "out.jsonl.provenance").unlink()
    result = score(weight=0.25)
    assert result.status == 0
    assert "out.jsonl has no provenance record" in result.err


def reward_types(fingerprint: str) -> Answer:
    about = {"fingerprint": fingerprint, "needs_reference": True, "fields": [], "range": [0, 1]}
    route = {"kind": "rule", "target": "gsm8k"}
    return Answer({"reward_types": {"gsm8k": about}, "routes": {"gsm8k": route}, "settings": {}, "version": "1"})


@pytest.mark.parametrize("again", ["b", None])
def test_another_function_is_told(cli: Cli, tmp_path: Path, again: str | None) -> None:
    """A reward function that was edited is noticed by its fingerprint; a server that is away is not asked for it."""
    write_jsonl(tmp_path / "in.jsonl", samples(1))
    result = None
    for fingerprint in ("a", again):
        types = reward_types(fingerprint) if fingerprint else Answer("", 500)
        scores = Answer({"scores": [{"value": 1.0, "status": "ok", "reason": "", "cached": False}]})
        with scripted_server(reward_types=types, score=scores) as server:
            cli.variables |= {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_TIMEOUT": "20"}
            result = cli("score", "in.jsonl", "-o", "out.jsonl")
    assert result is not None
    assert (result.status, "differently: the scorer of gsm8k" in result.err) == ((2, True) if again else (0, False))


def test_what_was_forgotten_is_told_no_more(score: Callable[..., Any], scoring: Cli, tmp_path: Path) -> None:
    """Where a run that starts over ends before it knows what its rows depend on, OUT does not say the old."""
    assert score().status == 0
    with socket.create_server(("127.0.0.1", 0)) as silent:
        scoring.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = scoring.start("score", "in.jsonl", "-o", "out.jsonl", "--force")
        connection, _ = silent.accept()
        with connection:
            process.kill()
            process.wait()
    assert not (tmp_path / "out.jsonl.provenance").exists()


def test_an_error_leaves_what_was_scored_before_with_its_provenance(cli: Cli, tmp_path: Path) -> None:
    """Where a run ends by an error, it waits for what its rows depend on, so that the next run can compare."""
    write_jsonl(tmp_path / "in.jsonl", [{**row, "data_source": "llm_judge_remote"} for row in samples(2)])
    scored = Answer({"scores": [{"value": 1.0, "status": "ok", "reason": "", "cached": False}]})
    types = Answer(reward_types("a").body, delay=0.5)
    with scripted_server(scored, Answer({"error": "gone", "field": "data_source"}, 404), reward_types=types) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        assert cli("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", "1").status == 2
    assert len(read_jsonl(tmp_path / "out.jsonl")) == 1
    assert "llm_judge_remote" in json.loads((tmp_path / "out.jsonl.provenance").read_text())["routes"]


def test_a_job_of_another_function_is_another_job(cli: Cli, tmp_path: Path) -> None:
    """The key by which a job is recognised is another one where the server's function is, and else the same."""
    write_jsonl(tmp_path / "in.jsonl", samples(1))
    keys = []
    for fingerprint in ("a", "a", "b"):
        with scripted_server(reward_types=reward_types(fingerprint), jobs=Answer({"job_id": "0" * 32})) as server:
            cli.variables["REWARD_SERVER_URL"] = server.url
            assert cli("submit", "in.jsonl").status == 0
            keys += [one["headers"]["Idempotency-Key"] for one in server.asked if one["path"] == "/jobs"]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_definition_is_what_a_routes_file_holds(name: str) -> None:
    """The definition of a composite, read again, is the same route."""
    route = parse_route(name, COMPOSITES[name])
    assert parse_route(name, definition(route)) == route


def test_a_judges_definition() -> None:
    """The provenance of a named judge is what scores depend on of its table, here and on a server, not its address."""
    kept = {"model": "m", "template": "binary", "options": {"temperature": 0}}
    table = {**kept, "base_url": ["http://a:1"], "api_key_env": "KEY"}
    routes = [judge_route(parse_judge("small", table)), parse_route("both", {"sum": ["small", "gsm8k"]})]
    known = RouteTable([*builtin_routes(), *routes])
    told = json.loads(json.dumps({route.pattern: definition(route) for route in known}))
    found = server_provenance({"routes": told, "reward_types": {}, "settings": {}}, ["both"])["routes"]
    assert found["small"] == {"kind": "judge", "target": "small", "judge": kept}
    assert found == definitions(known, ["both"])


async def test_who_is_asked_about_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward server is asked about a judge that it is sent samples for, and not about one with an address."""
    asked: list[str] = []

    async def ask(_: Settings) -> dict[str, Any]:
        asked.append("server")
        return {}

    monkeypatch.setattr(provenance, "fetch_server_identity", ask)
    monkeypatch.setattr(provenance, "_fingerprint", AsyncMock(return_value=None))
    tables = {"near": {"base_url": "http://a:1"}, "far": {"model": "m"}}
    routes = RouteTable([judge_route(parse_judge(name, table)) for name, table in tables.items()])
    await provenance.routes_provenance(routes, ["near"], Settings.from_env({}))
    assert [] == asked
    await provenance.routes_provenance(routes, ["far"], Settings.from_env({}))
    assert ["server"] == asked


def test_a_server_tells_what_is_behind_its_routes() -> None:
    """Of a source it is the function's fingerprint, or the settings of the judge; an older server tells nothing."""
    routes = [*builtin_routes(), parse_route("graded", {"sum": ["gsm8k_hard", "llm_judge_remote_x"]})]
    said = {
        "reward_types": {"gsm8k": {"fingerprint": "a"}},
        "routes": {route.pattern: definition(route) for route in routes},
        "settings": {"JUDGE_REVISION": "2"},
    }
    found = server_provenance(said, ["graded"])
    assert found["routes"] == definitions(RouteTable(routes), ["graded"])
    assert found["services"] == {
        "gsm8k_hard on the reward server": "a",
        "llm_judge_remote_x on the reward server": {"JUDGE_REVISION": "2"},
    }
    assert server_provenance({}, ["graded"]) == {"routes": {}, "services": {}}
    assert server_provenance({"routes": {"x": {"sum": 3}}, "reward_types": {}}, ["x"]) == {"routes": {}, "services": {}}


def test_what_only_one_run_knows_is_no_change() -> None:
    """A service that was away, and a source that is new, differ from nothing; both runs' knowledge is kept."""
    before = {"services": {"gsm8k": "a"}, "settings": {"JUDGE_REVISION": "1"}}
    now: dict[str, dict[str, Any]] = {"services": {"math": "b"}, "settings": {"JUDGE_REVISION": "2"}, "routes": {}}
    assert list_changes(before, now) == ['JUDGE_REVISION was "1", is "2"']
    assert merge(before, now)["services"] == {"gsm8k": "a", "math": "b"}
