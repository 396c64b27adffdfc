"""Rules without a reward server: what the client scores in its own process is what the server scores."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rewardstack import Request, Score, score
from rewardstack.settings import DEFAULTS as CLIENT_DEFAULTS
from rewardstack.settings import warn_of_misspelled
from rewardstack.trainers import openrlhf, verl
from rewardstack_rules.scoring.local import embedded_rules
from rewardstack_rules.scoring.output import MAX_LINES_PER_MINUTE, OutputLog
from rewardstack_rules.settings import DEFAULTS
from tests.rules.conftest import OWN_FUNCTIONS, VERIFY_TIMEOUT, RewardServer
from tests.support.table import Table

HARD = (r"\boxed{\frac{\sin(2x)}{2\cos(x)} + y}", r"\sin(x) + y")
"""Needs a comparison that no shortcut decides."""
LONG = "word " * 8000
CASES: dict[str, tuple[Any, ...]] = {
    "gsm8k right": ("gsm8k", "#### 42", "42"),
    "gsm8k wrong": ("gsm8k", "#### 41", "42"),
    "gsm8k without an answer": ("gsm8k", "I do not know.", "42"),
    "gsm8k long": ("gsm8k", LONG + "#### 42", "42"),
    "a reference that is missing": ("gsm8k", "#### 42", None),
    "a reference that holds no number": ("gsm8k", "#### 42", "many"),
    "an option that is wrong": ("gsm8k", "#### 42", "42", {"method": "lax"}),
    "several references": ("exact_match", "b", ["a", "b"]),
    "chat messages": ("exact_match", [{"role": "assistant", "content": "a"}], "a"),
    "a response of another type": ("exact_match", 42, "42"),
    "multiple choice": ("multiple_choice", "The answer is (B).", "B"),
    "math at once": ("math", r"so \boxed{\frac12}", "0.5"),
    "math in isolation": ("math", *HARD),
    "math wrong in isolation": ("math", HARD[0], r"\sin(x) - y"),
    "math that cannot be read": ("math", r"\boxed{\frac{1}{}{}}", r"\frac{2}{}{}"),
    "math long": ("math", LONG + HARD[0], HARD[1]),
    "math with an option": ("math_verifier", "It is 3.1", "3.14", {"tolerance": 0.1, "extraction": "flexible"}),
    "math with an option that is wrong": ("math", r"\boxed{1}", "1", {"extraction": "lax"}),
    "regex": ("rule_remote_regex_format", "abc", None, {"pattern": "a.c"}),
    "a regex that is none": ("rule_remote_regex_format", "abc", None, {"pattern": "("}),
    "JSON schema": ("rule_remote_json_schema", '{"a": 1}', None, {"schema": {"required": ["b"]}}),
    "length": ("rule_remote_length", "one two", None, {"target_length": 4, "length_unit": "words"}),
    "repetition": ("rule_remote_repetition", "a b a b a b", None, {"ngram_size": 2}),
    "mathematics by form": ("rule_remote_example_math", "<answer>4</answer>", "4"),
    "an own function": ("rule_remote_keywords", "apples and pears", "apples, plums"),
    "an own function without a score": ("rule_remote_keywords", "apples", " , "),
    "an own function with parts": ("rule_remote_concise", "one two three", None, {"max_words": 2}),
    "an own function that takes all fields": ("rule_remote_echo", "a", None, {"x": 1, "y": [2], "timeout": 30}),
    "an own function that raises": ("rule_remote_raises", "a", "b"),
    "an own function that ends its process": ("rule_remote_leaves", "now", None),
    "an own function and a field that no server takes": ("rule_remote_echo", "a", None, {"data_path": "/etc"}),
    "an own function and a field that JSON cannot hold": ("rule_remote_echo", "a", None, {"x": {1, 2}}),
}
ENDLESS: dict[str, tuple[Any, ...]] = {
    "a regex that takes for ever": ("rule_remote_regex_format", "a" * 40, None, {"pattern": "(a|aa)+b"}),
    "an own function that hangs": ("rule_remote_hang", "slow", None),
}
CACHED = ("math in isolation", "regex", "JSON schema", "an own function", "an own function with parts")
"""Cases whose scores are looked up in the cache; what is decided at once is not."""


@pytest.fixture(autouse=True)
def rules_here(needs_process: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of the test server, and no server's address."""
    for name in (*CLIENT_DEFAULTS, *DEFAULTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REWARD_FUNCTIONS", os.pathsep.join(map(str, OWN_FUNCTIONS)))
    monkeypatch.setenv("VERIFY_TIMEOUT", str(VERIFY_TIMEOUT))
    embedded_rules.cache_clear()
    yield
    embedded_rules.cache_clear()


def scores_of(cases: dict[str, tuple[Any, ...]]) -> dict[str, Score]:
    """The score of each case, without how long it took."""
    found = score([Request(*case) for case in cases.values()])
    return {name: replace(one, latency_ms=0.0) for name, one in zip(cases, found, strict=True)}


def test_scores_are_the_servers(server: RewardServer, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Each case has the same value, status, reason, field and parts in process as through a reward server."""
    monkeypatch.setenv("REWARD_CACHE", "off")
    here = scores_of(CASES)
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    there = scores_of(CASES)
    for name in CASES:
        with table.case(name):
            assert here[name] == there[name]


def test_limits_are_the_servers(hasty: RewardServer, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """A sample that takes longer than it may fails in process as through a reward server."""
    monkeypatch.setenv("VERIFY_TIMEOUT", "1")  # expires
    here = scores_of(ENDLESS)
    monkeypatch.setenv("REWARD_SERVER_URL", hasty.url)
    there = scores_of(ENDLESS)
    for name in ENDLESS:
        with table.case(name):
            assert here[name] == there[name]
            assert "the sample took longer than 1 s" in here[name].reason


def test_cache_keys_are_the_servers(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reward server scored is found in the cache when rules run in process, and the other way round."""
    cases = {name: CASES[name] for name in CACHED}
    for first, then in ((server.url, None), (None, server.url)):
        fresh = {name: (case[0], f"{uuid.uuid4()} {case[1]}", *case[2:]) for name, case in cases.items()}
        for url, cached in ((first, False), (then, True)):
            if url is None:
                monkeypatch.delenv("REWARD_SERVER_URL", raising=False)
            else:
                monkeypatch.setenv("REWARD_SERVER_URL", url)
            assert dict.fromkeys(cases, cached) == {name: one.cached for name, one in scores_of(fresh).items()}


def test_reserved_field_of_a_parameter(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function gets a reserved field that a parameter names in process; through a server, the sample is unscored."""
    case = {"one": ("rule_remote_reserved", "a", None, {"image_path": "a.png", "url": "http://a", "x": 1})}
    monkeypatch.setenv("REWARD_CACHE", "off")
    assert '{"image_path": "a.png", "others": {"x": 1}}' == scores_of(case)["one"].reason
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    assert ("unscored", "extra_info.image_path") == (scores_of(case)["one"].status, scores_of(case)["one"].field)


def test_sample_that_names_a_server(server: RewardServer) -> None:
    """In one batch, a sample with `server_url` is scored by that server, the others in process."""
    names = {f"case {at}": ("math", *HARD, {"server_url": server.url} if at % 2 else {}) for at in range(10)}
    assert [("ok", 1.0)] * 10 == [(one.status, one.value) for one in scores_of(names).values()]
    nowhere = {"server_url": "http://127.0.0.1:9", "timeout": 0.5}  # expires, as nothing listens there
    found = scores_of({"here": ("gsm8k", "#### 42", "42"), "nowhere": ("gsm8k", "#### 42", "42", nowhere)})
    assert ["ok", "failed"] == [one.status for one in found.values()]


def test_what_functions_print(caplog: pytest.LogCaptureFixture) -> None:
    """What a function prints and logs is in the trainer's log, bounded and with control characters escaped."""
    cases: dict[str, tuple[Any, ...]] = {
        "ok": ("rule_remote_prints", "a \x1b[31m\u202e \ud800 b"),
        "raises": ("rule_remote_prints", "c", None, {"and_raise": True}),
        "many": ("rule_remote_prints", "d", None, {"times": 1000}),
        "silent": ("rule_remote_echo", "e"),
    }
    found = scores_of(cases)
    lines = [record.getMessage() for record in caplog.records if record.name == "rewardstack_rules.scoring.output"]

    assert ["ok", "failed", "ok", "ok"] == [one.status for one in found.values()]
    assert found["raises"].reason.startswith("prints raised RuntimeError: after printing (hostile.py, line ")
    for line in (r"print 0 of a \x1b[31m\u202e \ud800 b", "to stderr", "an own record", "a warning", "print 0 of c"):
        assert f"prints printed: {line}" in lines
    assert 40 <= sum(" of d" in line for line in lines) <= 45 and any("more lines)" in line for line in lines)
    assert {line.partition(" ")[0] for line in lines} == {"prints"}


def test_most_lines_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Functions that print with every sample fill a log with a bounded number of lines a minute."""
    output_log = OutputLog()
    for at in range(1000):
        output_log.add("chatty", f"line {at}\n\nline {at}")

    assert len(caplog.records) == MAX_LINES_PER_MINUTE


def test_other_variables_of_the_server_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer may use names that a server reads otherwise, such as DATASET_PATH."""
    monkeypatch.setenv("DATASET_PATH", "/no/such/file")
    monkeypatch.setenv("REWARD_WORKERS", "many")
    assert score([Request("math", *HARD)])[0].value == 1.0


def test_misspelled_variable(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A variable that is nearly one of the rules' is named in a trainer's log."""
    monkeypatch.setenv("CODE_PROCESS", "9")
    monkeypatch.setattr("rewardstack.settings._reported", set())
    warn_of_misspelled.cache_clear()

    embedded_rules.__wrapped__()

    assert "unknown variable 'CODE_PROCESS': did you mean 'CODE_PROCESSES'?" in caplog.messages


async def test_files_of_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer's file scores in process: in verl's loop, in its threads, and in OpenRLHF's batches."""
    details: Any = await verl.compute_score("math", *HARD, {})
    blocking: Any = await asyncio.to_thread(verl.compute_score_sync, "math", *HARD, {})
    assert [1.0, 1.0] == [details["score"], blocking["score"]]
    monkeypatch.setenv("REWARD_TYPE", "math")
    rewards = openrlhf.reward_func(
        ["1 + 1?" + answer for answer in (r"\boxed{2}", r"\boxed{3}")], ["1 + 1?"] * 2, ["2"] * 2
    )
    assert [1.0, 0.0] == rewards["rewards"]
