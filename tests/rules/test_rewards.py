"""The built-in reward functions: the cases are in `tests/cases/rewards*.json`, each with its reason."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from rewardstack.errors import RequestError
from rewardstack.routing.routes import RULES
from rewardstack_rules.functions.builtin.format import answer_in_format
from rewardstack_rules.functions.builtin.gsm8k import gsm8k
from rewardstack_rules.functions.builtin.json_schema import json_schema
from rewardstack_rules.functions.builtin.length import length
from rewardstack_rules.functions.builtin.multiple_choice import multiple_choice
from rewardstack_rules.functions.builtin.repetition import repetition
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.scoring.task import evaluate
from tests.rules.conftest import VERIFY_TIMEOUT, RewardServer
from tests.support.table import Table

FILES = sorted((Path(__file__).parents[1] / "cases").glob("rewards*.json"))
CASES = [case for file in FILES for case in json.loads(file.read_text())]
HACKS = json.loads((Path(__file__).parents[1] / "cases" / "hacks.json").read_text())
"""Ways to be paid for no answer."""
REGISTRY = load_registry([])


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_value(path: Path, table: Table) -> None:
    """A reward function gives each case the value, and the parts, that are in the data."""
    for place, case in enumerate(json.loads(path.read_text())):
        with table.case(f"{place}: {case['rule']}: {case['why']}"):
            outcome = evaluate(REGISTRY.get(case["rule"]), case["response"], case["references"], case.get("extra", {}))

            assert (case["value"], case.get("parts")) == (outcome.value, outcome.parts)
            assert case["value"] is not None or outcome.reason != ""


def test_hack(table: Table) -> None:
    """What is no answer pays nothing, but where the documents declare that it does."""
    for place, hack in enumerate(HACKS):
        with table.case(f"{place}: {hack['function']}: {hack['reason']}"):
            rule = REGISTRY.get(hack["function"])
            outcome = evaluate(rule, hack["response"], hack["references"], hack.get("extra", {}))

            assert outcome.value == hack["pays"]


def test_range() -> None:
    """No case's value lies outside the range that its rule declares."""
    ranges = {case["rule"]: REGISTRY.get(case["rule"]).range for case in CASES}

    outside = [
        c for c in CASES if c["value"] is not None and not ranges[c["rule"]][0] <= c["value"] <= ranges[c["rule"]][1]
    ]

    assert outside == []


def test_every_rule_has_cases() -> None:
    """The data has cases for every built-in rule, those of `code` in `tests/code`; the client knows them by name."""
    assert {case["rule"] for case in CASES} | {"code"} == {rule.name for rule in REGISTRY} == set(RULES)


@pytest.mark.parametrize(
    "response",
    ["<answer>" * 200_000, "<think>" + "<answer></answer>" * 200_000, "<think>" + "</think>" * 500_000],
    ids=["answers", "pairs", "ends"],
)
def test_format_of_degenerate_responses(response: str) -> None:
    """Megabytes of tags are not the format, and are read in one pass."""
    assert answer_in_format(response) is None


@pytest.mark.parametrize(
    "option", [{}, {"extraction": "flexible"}, {"method": "strict"}, {"method": "flexible"}], ids=str
)
@pytest.mark.parametrize(
    "response",
    ["#" * 2_000_000, "#### " * 400_000, "#### " + "1" * 2_000_000, "#### " + "1," * 10**6, "1/" * 10**6, "1 " * 10**6],
)
def test_gsm8k_of_degenerate_responses(response: str, option: dict[str, Any]) -> None:
    """Megabytes of marks or digits are a wrong answer, and are read in one pass."""
    assert gsm8k(response, "42", **option).value == 0.0


@pytest.mark.parametrize(
    "unit", ["answer to ", "answer is", "answer ", "*", " ", "\\boxed{", "\\text{", "A or ", "B is "]
)
def test_multiple_choice_of_degenerate_responses(unit: str) -> None:
    """Megabytes of what begins an answer are none, and are read in one pass."""
    assert multiple_choice(unit * (3_000_000 // len(unit)), "C").value == 0.0


def test_multiple_choice_reads_the_end() -> None:
    """An answer behind megabytes of text is found; one before them is not looked for."""
    text = "word " * 500_000

    assert (1.0, 0.0) == tuple(
        multiple_choice(one, "C").value for one in (text + "The answer is (C)", "The answer is C. " + text)
    )


def test_long_responses_are_not_measured() -> None:
    """Where counting would take long, a bound decides; the number of characters is known without counting."""
    text = "a b " * 500_000

    outcomes = [length(text, target_length=10**6), repetition(text)]

    assert [(0.0, True), (0.0, True)] == [(outcome.value, "longer than" in outcome.reason) for outcome in outcomes]
    assert length(text, target_length=2_000_000, length_unit="characters").value == 1.0


@pytest.mark.parametrize(
    ("response", "value"),
    [("[" * 100_000, 0.0), ('"' + "a" * 100_000 + '"', 0.0), ("1" + "0" * 5_000, 0.0), ("```json\n" * 200_000, 0.0)],
    ids=["nested", "long", "digits", "fences"],
)
def test_json_beyond_bounds(response: str, value: float) -> None:
    """JSON that is too deep or too long scores 0 without a look at its schema."""
    assert json_schema(response, schema={}).value == value


@pytest.mark.parametrize(
    ("rule", "extra", "reason"),
    [
        ("json_schema", {"schema": {"title": "a" * 100_001}}, "extra_info.schema: is longer than 100000 characters"),
        (
            "json_schema",
            {"schema": json.loads('{"not": ' * 300 + "{}" + "}" * 300)},
            "extra_info.schema: is too deeply",
        ),
        ("regex_format", {"pattern": "a" * 2_001}, "extra_info.pattern: is longer than 2000 characters"),
        ("regex_format", {"pattern": "(" * 999 + ")" * 999}, "extra_info.pattern: is not a valid regular expression"),
        ("regex_format", {}, "extra_info.pattern is missing"),
        ("gsm8k", {"method": "x" * 1000}, "extra_info.method: expected one of strict, flexible, got 'xxx"),
        (
            "length",
            {"max_length": 10**400},
            "extra_info.max_length: expected a number from 1 to 1e+12, got a value of type int",
        ),
    ],
)
def test_unusable_option(rule: str, extra: dict[str, Any], reason: str) -> None:
    """A field of `extra_info` that cannot be used leaves the sample unscored; the reason names it, and is short."""
    outcome = evaluate(REGISTRY.get(rule), "1", ["1"], extra)

    assert (outcome.value, outcome.reason.startswith(reason), len(outcome.reason) < 200) == (None, True, True)
    assert reason.startswith(outcome.field) and outcome.field.startswith("extra_info.")


def test_nothing_is_fetched() -> None:
    """A schema that refers to a server that is there is unscored, and the server is not asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        schema = {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema"}

        with pytest.raises(RequestError, match=r"extra_info.schema: a \$ref leads out of the schema"):
            json_schema("1", schema=schema)

        with pytest.raises(BlockingIOError):
            server.accept()


def test_what_callers_wrote_is_isolated() -> None:
    """The rules that run a caller's pattern or schema run where they can be killed."""
    assert (True, True) == (REGISTRY.get("regex_format").isolated, REGISTRY.get("json_schema").isolated)


def test_runaway_pattern(server: RewardServer) -> None:
    """A pattern that takes for ever fails its sample at the deadline, and the others of the batch are scored."""
    item = {"data_source": "regex_format", "solution_str": "a" * 40 + "b"}

    runaway, quick = server.score(
        item | {"extra_info": {"pattern": "(a|aa)+"}}, item | {"extra_info": {"pattern": "a+b"}}
    )

    assert ("failed", "ok", 1.0) == (runaway["status"], quick["status"], quick["value"])
    assert runaway["reason"] == f"regex_format: the sample took longer than {VERIFY_TIMEOUT} s"


def test_parts_over_http(server: RewardServer) -> None:
    """Rewards of several parts report them in `details`."""
    [score] = server.score(
        {"data_source": "gsm8k", "solution_str": "#### 41", "ground_truth": "42", "extra_info": {"format_score": 0.1}}
    )

    assert (0.1, {"format": 0.1, "accuracy": 0.0}) == (score["value"], score["details"]["parts"])
