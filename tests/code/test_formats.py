"""Ground truths of trainers and data sets are told apart by their fields, and read whole."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest

from rewardstack.core.wire import sample_record
from rewardstack.pipeline.items import parse_single_reference
from rewardstack.score import Item
from rewardstack_rules.code.formats import MAX_BYTES, TestsError, read_tests
from tests.code.cases import load
from tests.support.table import Table


def test_formats(table: Table) -> None:
    """Each format is read as its kind, with its inputs and outputs; what cannot be run says why."""
    for case in load("formats"):
        with table.case(case["name"]):
            text = case["tests"] if isinstance(case["tests"], str) else json.dumps(case["tests"])
            if "error" in case:
                with pytest.raises(TestsError, match=case["error"]):
                    read_tests(text)
                continue
            problem = read_tests(text)
            assert problem.kind == case["kind"]
            assert [one.given for one in problem.cases] == case.get("given", [])
            assert [one.expected for one in problem.cases] == case.get("expected", [])
            assert len(problem.tests) == case.get("programs", 0)
            assert (problem.function, problem.entry) == (case.get("function", ""), case.get("entry", ""))
            assert problem.language == case.get("language", "python")
            assert (problem.checker.source if problem.checker else None) == case.get("checker")
            if "setup" in case:
                assert problem.setup.strip() == case["setup"].strip()


def packed(value: Any, protocol: int = 4) -> str:
    """Return tests as LiveCodeBench compresses them."""
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


@pytest.mark.parametrize("protocol", range(6))
def test_compressed(protocol: int) -> None:
    """LiveCodeBench's private tests are read from every protocol of pickle."""
    private = packed(json.dumps([{"input": "1", "output": "2", "testtype": "stdin"}]), protocol)
    problem = read_tests(json.dumps({"public_test_cases": "[]", "private_test_cases": private}))
    assert [(one.given, one.expected) for one in problem.cases] == [("1", "2")]


class Exploit:
    """Runs a command where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit",)


def test_hostile_compression(table: Table) -> None:
    """A pickle that is more than a string, a bomb and broken data are refused; nothing is unpickled."""
    bomb = base64.b64encode(zlib.compress(b"x" * (MAX_BYTES + 1))).decode()
    whole = packed("[]" * 50)
    for name, text in {
        "an exploit": packed(Exploit()),
        "a list": packed(["a", "b"]),
        "a bomb": bomb,
        "cut off": whole[: len(whole) // 2],
        "no pickle": base64.b64encode(zlib.compress(b"\xff\xfe" * 40)).decode(),
        "deep": "[" * 100_000,
        "long": "x" * (MAX_BYTES + 1),
    }.items():
        with table.case(name), pytest.raises(TestsError):
            read_tests(text)


def test_long_checker() -> None:
    """The language of a checker is found in time linear in its length."""
    problem = read_tests(json.dumps({"inputs": ["1"], "outputs": ["2"], "checker": "\n" * 1_000_000 + "#include <a>"}))
    assert problem.checker is not None and problem.checker.language == "cpp"


def test_longest_are_kept() -> None:
    """Of more cases than are wanted, those with the longest inputs are run, in their order."""
    problem = read_tests(json.dumps({"inputs": ["1", "333", "22"], "outputs": ["a", "b", "c"]}))
    assert [one.given for one in problem.limited(2).cases] == ["333", "22"]


def test_one_reference(table: Table) -> None:
    """A ground truth is one reference, the same one on a client and on a server that it was sent to."""
    for truth in ({"inputs": ["1"], "outputs": ["2"]}, ["assert f(1)", "assert f(2)"], ["assert f(1)"], "assert f(1)"):
        with table.case(str(truth)):
            [once] = references = parse_single_reference(truth)
            sent = json.loads(json.dumps(sample_record("code", Item("", references), {})))["ground_truth"]
            assert parse_single_reference(sent) == (once,)
    nothing: list[Any] = [None, [], "", float("nan")]
    for none in nothing:
        with table.case(repr(none)):
            assert parse_single_reference(none) == ()
