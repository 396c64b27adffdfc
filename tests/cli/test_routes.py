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


def rows(out: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:5]] for line in out.splitlines() if "│" in line]


@pytest.fixture
def routed(cli: Cli, tmp_path: Path) -> Cli:
    """The command, with a routes file."""
    (tmp_path / "routes.toml").write_text(ROUTES)
    cli.variables["REWARDSTACK_ROUTES"] = "routes.toml"
    return cli


def test_all_routes_are_listed(cli: Cli) -> None:
    """Every built-in route is there, with who scores it."""
    listed = rows(cli("routes").out)
    assert [row[0].rstrip("*") for row in listed] == sorted(route.name for route in builtin_routes())
    assert ["gsm8k", "rule", "reward server: gsm8k", "zero"] in listed


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
    assert result.out.startswith(f"{source} is taken by the route {route}\n")
    assert [row[0] for row in rows(result.out)] == [route]


def test_the_document_shows_what_is_printed(cli: Cli) -> None:
    """The block of `docs/cli.md` is this command's output."""
    printed = "\n".join(line.rstrip() for line in cli("routes", "gsm8k_train").out.splitlines())
    assert f"```\n{printed}\n```" in (ROOT / "docs" / "cli.md").read_text()


def test_an_unknown_source_lists_what_is_known(cli: Cli) -> None:
    """A source that no route takes is an error that names the routes."""
    result = cli("routes", "chess")
    assert result.status == 2
    assert "'chess' has no route; known: " in result.err
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
        "failed_part": "fail",
        "on_error": "raise",
    }
    assert records["strict"] == expected
    assert json.loads(cli("routes", "strict_1", "--json").out) == [expected]
