"""`rewardstack.trainers.openrlhf`: the file that OpenRLHF loads by its path."""

from __future__ import annotations

import importlib.util
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from rewardstack.core.messages import UnknownResponse
from rewardstack.core.responses import UNKNOWN, extract_response
from rewardstack.errors import RequestError, ScoringError, UnknownSourceError
from rewardstack.score import NO_REFERENCE
from rewardstack.trainers import openrlhf
from tests.support.servers import FaultServer
from tests.support.table import Table

PROMPTS = ["<|user|>Six?<|assistant|>", "Seven?"]
QUERIES = ["<s><|user|>Six?<|assistant|>six<|im_end|>\n", "Seven? seven</s>"]
CASES = json.loads((Path(__file__).resolve().parents[2] / "cases/openrlhf_queries.json").read_text())
"""Prompts, and how queries show them; `known` is false if the response is unscored."""
RESPONSES = (" I do not know.", " It is \\boxed{42}.", "\ufffd" * 9 + "x")
OK = {"failed": [0.0, 0.0], "unscored": [0.0, 0.0]}


@pytest.fixture(autouse=True)
def reward_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """The route of the tests."""
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A copy of the file in another directory, loaded by its path alone, as OpenRLHF does."""
    path = tmp_path / "reward_func.py"
    path.write_text(Path(openrlhf.__file__).read_text())
    spec = importlib.util.spec_from_file_location("reward_func", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_responses(server: FaultServer, module: Any) -> None:
    """What is scored stands between the prompt and the tokens that end a text; this server counts its characters."""
    expected = {"rewards": [3.0, 6.0], "scores": [3.0, 6.0], "extra_logs": OK}
    assert expected == module.reward_func(QUERIES, PROMPTS, ["6", "7"], further="argument")


def test_queries_that_differ_from_the_prompt(table: Table) -> None:
    """The response is what follows the prompt as the query shows it, whatever the response says; else it is unknown."""
    for case in CASES:
        prompt = case["prompt"]
        for response in (*RESPONSES, f"I think.\n{prompt} no", prompt[-20:]):
            with table.case(f"{case['name']}: {response}"):
                found = extract_response(case["shown"] + response, prompt)
                if case.get("known", True):
                    assert found.strip().endswith(response.strip()) and "boxed{42}.\nQ" not in found
                    assert len(found) <= len(response) + len("<|im_end|>\n<|im_start|>assistant\n")
                else:
                    assert found == UnknownResponse(UNKNOWN)
    for value in (None, 7, ["x"]):
        assert extract_response(value, "x") == value and extract_response("x", value) == "x"


def test_one_warning_about_unknown_responses(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query without its prompt is unscored, and one warning a batch says why."""
    monkeypatch.setenv("REWARD_TYPE", "exact_match")
    with caplog.at_level(logging.WARNING):
        reply = openrlhf.reward_func(["Seven? 7", "8? 7", "9? 7"], ["Seven? ", "Seven? ", "Seven? "], ["7", "7", "7"])
    assert (reply["rewards"], reply["extra_logs"]["unscored"]) == ([1.0, 0.0, 0.0], [0.0, 1.0, 1.0])
    [warning] = [record.getMessage() for record in caplog.records if "unscored" in record.getMessage()]
    assert warning.endswith(f"2 of 3 samples are unscored; first error: {UNKNOWN}")


def test_unscored(server: FaultServer) -> None:
    """A sample that cannot be judged counts 0, and 1 as `unscored` in the logs."""
    server.set(said={"value": None, "status": "unscored", "reason": NO_REFERENCE})
    reply = openrlhf.reward_func(QUERIES, PROMPTS, ["", ""])
    assert (reply["rewards"], reply["extra_logs"]) == ([0.0, 0.0], {"failed": [0.0, 0.0], "unscored": [1.0, 1.0]})


def test_columns(server: FaultServer) -> None:
    """Without labels there is no reference, and a list of another length is named."""
    assert openrlhf.reward_func(QUERIES, PROMPTS, None)["rewards"] == [3.0, 6.0]
    with pytest.raises(RequestError, match="^labels: 1 values for 2 samples"):
        openrlhf.reward_func(QUERIES, PROMPTS, ["6"])


def test_failed(server: FaultServer) -> None:
    """A sample that the infrastructure failed is an error, of which OpenRLHF makes None, and no 0."""
    server.set(said={"value": None, "status": "failed", "reason": "the judge is away"})
    with pytest.raises(ScoringError, match="2 of 2 samples failed; first error: the judge is away"):
        openrlhf.reward_func(QUERIES, PROMPTS, ["6", "7"])


def test_unknown(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route that there is not is named, with those that there are."""
    monkeypatch.setenv("REWARD_TYPE", "gsm9k")
    with pytest.raises(UnknownSourceError, match=r"'gsm9k' has no route; did you mean 'gsm8k'\? available: "):
        openrlhf.reward_func(QUERIES, PROMPTS, ["6", "7"])
