"""Custom reward functions behind a real server: the examples, and some that misbehave."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, score
from rewardstack_rules.functions.results import EXPECTED
from tests.rules.conftest import OWN_FUNCTIONS, VERIFY_TIMEOUT, RewardServer
from tests.rules.test_operations import metric
from tests.support.table import Table
from tests.support.waiting import eventually


def line_of(text: str) -> int:
    """Return the number of the one line of the functions' files in which a text is."""
    lines = [at for path in OWN_FUNCTIONS for at, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    (found,) = lines
    return found


WAITING = 'rewardstack_verifier_waiting{pool="slow"}'
LINES = {
    "raises": line_of("raise ValueError("),
    "library": line_of("json.loads("),
    "cancelled": line_of("raise asyncio.CancelledError"),
    "exits": line_of("raise SystemExit("),
    "concise": line_of("max_words / "),
    "needs_rubric": line_of("def needs_rubric(") - 1,
    "silent": line_of("def silent(") - 1,
}
"""Where functions raise, by file and line."""


def sample(name: str, response: str = "fine", reference: Any = None, **extra: Any) -> dict[str, Any]:
    """A sample for the custom function `name`."""
    source = f"rule_remote_{name}"
    return {"data_source": source, "solution_str": response, "ground_truth": reference, "extra_info": extra}


@pytest.mark.parametrize(
    ("item", "value", "parts"),
    [
        (sample("keywords", "red and blue", "red, green"), 0.5, None),
        (sample("keywords", "red and blue", ["red, green", "red, Blue"]), 1.0, None),
        (sample("concise", "three short words"), 1.0, {"words": 3.0}),
        (sample("concise", "three short words", max_words=1), 1 / 3, {"words": 3.0}),
        (sample("shares_a_word_with_the_prompt", "red", prompt="Red or blue?"), 1.0, None),
        (sample("short_enough", "It is Paris.", "Paris", max_characters=20), 1.0, {"length": 12.0}),
        (sample("has_answer_tags", "<answer>Paris</answer>"), 1.0, None),
        (sample("echo", a=1, b=[2], c={"d": None}), 1.0, {"fields": 3.0}),
        (sample("needs_rubric", "some words", "r", rubric="word"), 1.0, None),
    ],
)
def test_value(server: RewardServer, item: dict[str, Any], value: float, parts: dict[str, float] | None) -> None:
    """Functions of both shapes get what they ask for, and their parts are reported."""
    [score] = server.score(item)

    assert ("ok", value, parts) == (score["status"], score["value"], score["details"].get("parts"))


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (sample("keywords", "red"), "the reference (ground_truth) is missing or empty"),
        (sample("keywords", "red", ","), "the reference holds no keywords"),
        (
            sample("needs_rubric", "red", "r"),
            "extra_info.rubric is missing, but reward function 'needs_rubric' (hostile.py, line {needs_rubric}) "
            "requires it; send it, or give the parameter a default (rubric=None)",
        ),
        (
            sample("silent"),
            "reward function 'silent' (hostile.py, line {silent}) gave no score: it returned None; return a number to "
            "score the sample",
        ),
    ],
)
def test_unscored(server: RewardServer, item: dict[str, Any], reason: str) -> None:
    """What a function cannot judge is unscored, for the reason it gives."""
    [score] = server.score(item)

    assert ("unscored", reason.format_map(LINES)) == (score["status"], score["reason"])


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (sample("hang", "slow"), f"hang: the sample took longer than {VERIFY_TIMEOUT} s"),
        (sample("busy", "slow"), f"busy: the sample took longer than {VERIFY_TIMEOUT} s"),
        (sample("leaves", "now"), "leaves: its process died"),
        (sample("raises", "you"), "raises raised ValueError: first line about you (hostile.py, line {raises})"),
        (
            sample("raises_in_a_library", "["),
            "raises_in_a_library raised JSONDecodeError: Expecting value: line 1 column 2 (char 1)"
            " (hostile.py, line {library})",
        ),
        (sample("cancelled"), "cancelled raised CancelledError (hostile.py, line {cancelled})"),
        (sample("exits"), "exits raised SystemExit: 3 (hostile.py, line {exits})"),
        (sample("beyond"), "beyond gave 7, outside its range of 0 to 1"),
        (sample("not_a_number"), f"not_a_number returned nan, which is not finite; {EXPECTED}"),
        (sample("text"), f"text returned the text 'good'; {EXPECTED}"),
        (sample("two_for_one"), f"two_for_one returned a list of 2 for one response; {EXPECTED}"),
        (
            sample("concise", "a", max_words="many"),
            "concise raised TypeError: unsupported operand type(s) for /: 'str' and 'int'"
            " (reward_functions.py, line {concise})",
        ),
    ],
)
def test_failed(server: RewardServer, item: dict[str, Any], reason: str) -> None:
    """A function that hangs, dies, raises or returns nonsense fails its sample, with one line that says so."""
    before, bad, after = server.score(sample("hang"), item, sample("leaves"))

    assert ("failed", reason.format_map(LINES)) == (bad["status"], bad["reason"])
    assert (before["status"], after["status"]) == ("ok", "ok")


def test_signatures_of_trainers(server: RewardServer, table: Table) -> None:
    """The signatures of verl, TRL, OpenRLHF and slime work as they are, `async` ones included."""
    extra = {"prompt": "p", "unit": "m"}
    source = "rule_remote_verl"
    expected: dict[str, dict[str, Any]] = {
        "verl": {"data_source": source, "solution_str": "res", "ground_truth": "ref", "extra_info": extra},
        "verl_async": {"solution_str": "res", "ground_truth": "ref"},
        "trl_columns": {"prompts": ["p"], "completions": ["res"], "answer": ["ref"]},
        "trl_messages": {"question": "p", "texts": ["res"]},
        "openrlhf": {"queries": ["pres"], "responses": ["res"], "labels": ["ref"]},
        "slime": {"response": "res", "label": "ref", "metadata": extra, "unit": "m"},
    }
    scores = server.score(*(sample(name, "res", "ref", **extra) for name in expected))
    for one, (name, values) in zip(scores, expected.items(), strict=True):
        with table.case(name):
            found = json.loads(one["reason"])
            assert ("ok", values) == (one["status"], {key: found[key] for key in values})


def test_slip_in_the_name_of_a_field(server: RewardServer) -> None:
    """A field whose name is nearly that of a parameter is reported in the reason and once in the log."""
    scores = server.score(
        *(sample("default_field", str(at), tagg="t", split="test") for at in range(3)),
        sample("required_field", "a", "b", units="m"),
        sample("default_field", "a", split="test"),
    )
    hint = "extra_info.tagg is not read by default_field; did you mean extra_info.tag?"

    assert all(one["reason"].endswith(f"; {hint}") and one["status"] == "ok" for one in scores[:3])
    assert scores[3]["status"] == "unscored"
    assert scores[3]["reason"].startswith(
        "extra_info.unit is missing, but reward function 'required_field' (signatures.py"
    )
    assert "; extra_info.units is not read by required_field; did you mean extra_info.unit?" in scores[3]["reason"]
    assert "not read" not in scores[4]["reason"]
    assert server.log.read_text().count(hint) in (1, 2)  # once in each worker


def test_data_source_of_a_route(
    server: RewardServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A function that a route leads to gets the `data_source` of the trainer; the client warns of a slip in a field."""
    routes = tmp_path / "routes.toml"
    routes.write_text('[routes]\n"openai/gsm8k" = "rule_remote_verl_defaults"\n')
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)

    by_route, by_name, slip = score(
        [
            Request("openai/gsm8k", "res", "ref"),
            Request("rule_remote_verl_defaults", "res", "ref"),
            Request("rule_remote_default_field", "res", "ref", {"tagg": "t"}),
        ]
    )

    assert json.loads(by_route.reason)["data_source"] == "openai/gsm8k"
    assert json.loads(by_name.reason)["data_source"] == "rule_remote_verl_defaults"
    assert slip.status == "ok"
    assert "extra_info.tagg is not read by default_field; did you mean extra_info.tag?" in caplog.text


def test_failures_are_not_cached(server: RewardServer) -> None:
    """A sample that failed is scored again when it comes again."""
    replies = [server.score(sample("leaves", "now"))[0] for _ in range(4)]

    assert {("failed", False)} == {(one["status"], one["cached"]) for one in replies}


def test_what_functions_print_is_in_the_log(server: RewardServer) -> None:
    """What a function prints and logs is in the server's log, a JSON record for each line."""
    server.score(sample("prints", "in the server"))

    lines = [json.loads(line) for line in server.log.read_text().splitlines() if "prints printed" in line]
    assert {"prints printed: print 0 of in the server", "prints printed: an own record"} <= {
        line["message"] for line in lines
    }


def test_slow_samples_hold_up_no_others(start: Callable[..., RewardServer], tmp_path: Path) -> None:
    """While samples that take long fill every isolated process, another is scored."""
    functions = os.pathsep.join(map(str, OWN_FUNCTIONS))
    server = start("--workers", "2", REWARD_FUNCTIONS=functions, VERIFY_TIMEOUT=3600, VERIFY_PROCESSES=2)
    (awaited := tmp_path / "awaited").mkdir()
    with ThreadPoolExecutor() as pool:
        texts = [str(awaited / f"{at}") for at in range(32)]
        slow = [pool.submit(server.score, *(sample("waits", text) for text in texts[at::4])) for at in range(4)]
        try:
            eventually(lambda: metric(server.get("/metrics").text, WAITING) > 0)
            quick = server.score(sample("hang", "quick"))[0]
            ended = [future.done() for future in slow]
        finally:
            for text in texts:
                Path(text).touch()

    assert (quick["status"], any(ended)) == ("ok", False)
    assert {"ok"} == {one["status"] for future in slow for one in future.result()}


def test_reward_types(server: RewardServer) -> None:
    """The list of reward types says what custom functions need."""
    types = server.get("/v1/reward_types").json()["reward_types"]

    about = {name: [types[name][key] for key in ("needs_reference", "fields", "range")] for name in types}
    assert about["keywords"] == [True, [], [0.0, 1.0]]
    assert about["concise"] == [False, ["max_words"], [0.0, 1.0]]
    assert about["shares_a_word_with_the_prompt"] == [False, ["prompt", "problem", "question"], [None, None]]
    assert about["echo"] == [False, ["*"], [None, None]]
    assert about["math_verifier"] == [True, ["extraction", "tolerance", "simplified"], [0.0, 1.5]]
    assert types["keywords"]["fingerprint"] == types["concise"]["fingerprint"] != types["echo"]["fingerprint"]
