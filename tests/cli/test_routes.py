"""`rewardstack routes`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardstack.routing.routes import builtin_routes

from .conftest import ROOT, Cli

ROUTES = """
[routes.strict]
on_error = "raise"
gate = "exact_match"
then = "gsm8k"

[routes.mixed]
sum = [{ route = "gsm8k", weight = 0.8 }, { route = "example_math", weight = 0.2 }]
"""


JUDGES = """
[judges.small]
base_url = ["http://a:1", "http://b:1"]
model = "Qwen/Qwen3-4B"
api_key_env = "SMALL_KEY"
template = "binary"
options = { temperature = 0 }

[judges.large]
model = "Qwen/Qwen3-32B"
replicas = 2

[routes.hard]
cascade = [{ route = "small", unsure = [0.2, 0.8], agreement = 0.75 }, "large"]
"""


def rows(out: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:5]] for line in out.splitlines() if "│" in line]


@pytest.fixture
def routed(cli: Cli, tmp_path: Path) -> Cli:
    """The command, with a routes file."""
    (tmp_path / "routes.toml").write_text(ROUTES)
    cli.variables["REWARDSTACK_ROUTES"] = "routes.toml"
    return cli


def test_all_routes_are_listed(cli: Cli) -> None:
    """Every built-in route is there, with who scores it: rules in this process where no reward server is named."""
    listed = rows(cli("routes").out)
    assert [row[0].rstrip("*") for row in listed] == sorted(route.name for route in builtin_routes())
    assert ["gsm8k", "rule", "this process: gsm8k", "zero"] in listed
    cli.variables["REWARD_SERVER_URL"] = "http://localhost:6000"
    assert ["gsm8k", "rule", "reward server: gsm8k", "zero"] in rows(cli("routes").out)


def test_a_files_routes_are_listed(routed: Cli) -> None:
    """Composites show what they are made of, and their policy."""
    listed = rows(routed("routes").out)
    assert ["strict", "gate", "exact_match, gsm8k", "raise"] in listed
    assert ["mixed", "sum", "gsm8k, example_math", "zero"] in listed


@pytest.mark.parametrize(
    ("source", "route"),
    [("gsm8k", "gsm8k"), ("gsm8k_main", "gsm8k"), ("math_verifier", "math_verifier"), ("math_500", "math"),
     ("rule_remote_mine", "rule_remote_*"), ("strict_2", "strict")],
)  # fmt: skip
def test_a_source_finds_its_route(routed: Cli, source: str, route: str) -> None:
    """With an argument the route that takes it is said."""
    result = routed("routes", source)
    assert result.status == 0
    assert result.out.startswith(f"{source} matches the route {route}\n")
    assert [row[0] for row in rows(result.out)] == [route]


def test_the_document_shows_what_is_printed(cli: Cli) -> None:
    """The block of `docs/cli.md` is this command's output where a reward server is named."""
    cli.variables["REWARD_SERVER_URL"] = "http://localhost:6000"
    printed = "\n".join(line.rstrip() for line in cli("routes", "gsm8k_train").out.splitlines())
    assert f"```\n{printed}\n```" in (ROOT / "docs" / "cli.md").read_text()


def test_an_unknown_source_lists_what_is_known(cli: Cli) -> None:
    """A source that no route takes is an error that names the routes."""
    result = cli("routes", "chess")
    assert result.status == 2
    assert "'chess' has no route; available: " in result.err
    assert "gsm8k" in result.err


def test_a_malformed_routes_file_is_named(routed: Cli, tmp_path: Path) -> None:
    """An error in the file names the file."""
    (tmp_path / "routes.toml").write_text("[routes.x]\nsum = 3\n")
    result = routed("routes")
    assert result.status == 2
    assert "routes.toml" in result.err


def test_routes_for_programs(cli: Cli, tmp_path: Path) -> None:
    """`--json` has each route's definition, what it takes and its policy; with a source the one that takes it."""
    (tmp_path / "routes.toml").write_text(ROUTES)
    cli.variables["REWARDSTACK_ROUTES"] = "routes.toml"
    records = {one["name"]: one for one in json.loads(cli("routes", "--json").out)}
    assert set(records) >= {route.name for route in builtin_routes()}
    assert records["llm_judge_remote"]["takes"] == "llm_judge_remote*"
    expected = {
        "name": "strict",
        "takes": "strict",
        "gate": {"route": "exact_match", "at_least": 1.0},
        "then": "gsm8k",
        "else": 0.0,
        "on_part_error": "fail",
        "on_error": "raise",
    }
    assert records["strict"] == expected
    assert json.loads(cli("routes", "strict_1", "--json").out) == [expected]


def test_judges_are_listed(cli: Cli, tmp_path: Path) -> None:
    """A judge is shown with whom it asks for what, and never with its key; a cascade with what it leaves undecided."""
    (tmp_path / "routes.toml").write_text(JUDGES)
    cli.variables |= {"REWARDSTACK_ROUTES": "routes.toml", "SMALL_KEY": "hush", "COLUMNS": "400"}
    result = cli("routes")
    listed = {row[0]: row[1:] for row in rows(result.out)}
    small = "http://a:1, http://b:1; Qwen/Qwen3-4B; key in SMALL_KEY; template binary; temperature 0"
    assert listed["small"] == ["judge", f"LLM judge: {small}", "zero"]
    assert "LLM_JUDGE_SERVER_URL, at /judges/large; Qwen/Qwen3-32B" in listed["large"][1]
    doubt = "undecided between 0.2 and 0.8 or if less than 0.75 of the votes agree"
    assert listed["hard"] == ["cascade", f"small ({doubt}), large", "zero"]
    shown = cli("routes", "--json").out
    records = {one["name"]: one for one in json.loads(shown)}
    assert records["large"]["judge"] == {"model": "Qwen/Qwen3-32B", "replicas": 2}
    assert (records["small"]["judge"]["base_url"], "hush" in result.out + shown) == (
        ["http://a:1", "http://b:1"],
        False,
    )
