"""The public functions of the verifier, and those with the signatures of math_verify."""

from __future__ import annotations

import inspect
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import math_verify as original
import numpy as np
import pytest

import rewardstack_verifier
from rewardstack_verifier import Options, equivalent, explain, extract, math_verify, parse, verify
from rewardstack_verifier.extraction.choices import chosen_letters
from rewardstack_verifier.math_verify.errors import TimeoutException
from rewardstack_verifier.math_verify.metric import math_metric
from rewardstack_verifier.math_verify.parser import ExprExtractionConfig, LatexExtractionConfig
from rewardstack_verifier.math_verify.utils import timeout
from tests.support.table import Table

ROOT = Path(__file__).resolve().parents[2]


def test_extract() -> None:
    """An answer has its text and its place; a response without one has none; an unknown mode names the known ones."""
    assert extract(r"So $\boxed{5}$.") == ("5", "\\boxed")
    assert extract("She has 5 apples.") is None
    assert extract("She has 5 apples.", "flexible") == ("5", "the last formula or number")
    assert extract("x" * 1_000_001) is None
    with pytest.raises(ValueError, match="'lenient' is unknown; use one of standard, strict, flexible"):
        extract("5", "lenient")


def test_parse() -> None:
    """A value has a type for what is read, and no reading for what is not, or is beyond the bounds."""
    assert parse("5").kind == "Number"
    assert parse(r"(1, 2]").readings
    assert parse("(" * 30 + "1" + ")" * 30).readings == ()


COMPARED: list[tuple[str, Any, tuple[object, ...]]] = [
    ("5", "5", (True, "", "text")),
    ("5.0", "5", (True, "", "number")),
    ("6", "5", (False, "wrong answer", "number")),
    (r"2\sqrt{2}", r"\sqrt{8}", (True, "", "value")),
    (r"x+1", r"Hence \boxed{1+x}", (True, "", "value")),
    (r"\int f(x)\,dx", r"\int g(x)\,dx", (None, "the reference cannot be parsed", "text")),
    ("5", "", (None, "the reference is empty", "")),
    ("1" * 1_001, "5", (False, "the answer cannot be parsed: too long", "text")),
    ("x+1", "x + 1", (True, "", "text")),
    ("5", 5, (True, "", "text")),
    ("0.5", np.float32(0.5), (True, "", "text")),
    ("0.3", 0.1 + 0.2, (True, "", "number")),
    (r"\frac{1}{10^7}", 1e-7, (True, "", "value")),
]


def test_equivalent(table: Table) -> None:
    """A comparison says whether, why not and how."""
    for answer, reference, expected in COMPARED:
        with table.case(f"{answer[:20]} | {reference!r}"):
            assert equivalent(answer, reference) == expected


VERIFIED: list[tuple[str, Any, tuple[object, ...]]] = [
    (r"\boxed{5.0}", "5", (1.0, "", "5.0", "number")),
    (r"\boxed{5}", ["4", "5"], (1.0, "", "5", "text")),
    (r"\boxed{6}", "5", (0.0, "wrong answer", "6", "number")),
    (r"\boxed{5}", [4, 5.0], (1.0, "", "5", "number")),
    ("I do not know.", "5", (0.0, "no answer", None, "")),
    ("I do not know.", "x+1", (0.0, "no answer", None, "")),
    (r"\boxed{5}", [], (None, "the reference is empty", "5", "")),
    (r"\boxed{5}", "", (None, "the reference is empty", "5", "")),
]


def test_verify(table: Table) -> None:
    """A verdict has a value, a reason, the extracted text and how it was compared."""
    for response, reference, expected in VERIFIED:
        with table.case(f"{response} | {reference!r}"):
            assert verify(response, reference) == expected


def test_refused(table: Table) -> None:
    """A wrong option, response or reference is an error that names it, its value and what is expected."""
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: verify("5", "5", Options("lenient")), "'lenient' is unknown; use one of"),
        (lambda: verify("5", "5", Options(tolerance=-1)), "tolerance: expected a number above 0 and up to 1, got -1"),
        (lambda: verify("5", "5", Options(tolerance=float("nan"))), "tolerance: .* got nan"),
        (lambda: equivalent("5", "5", Options(tolerance=5)), "tolerance: .* got 5"),
        (
            lambda: verify("5", float("inf")),
            "reference: expected a string, a finite number or a list of these, got inf",
        ),
        (lambda: verify("5", {"answer": "5"}), "reference: .* got dict$"),  # type: ignore[arg-type]
        (lambda: verify("5", ["5", None]), "reference: .* got NoneType; pass an empty string"),  # type: ignore[list-item]
        (lambda: equivalent("5", True), r"reference: .* got bool; pass str\(reference\)"),
        (lambda: equivalent("5", b"5"), r"reference: .* got bytes; pass reference\.decode\(\)"),  # type: ignore[arg-type]
        (lambda: equivalent(5, "5"), r"answer: expected a string, got int; pass str\(answer\)"),  # type: ignore[arg-type]
        (lambda: verify(None, "5"), "response: expected a string, got NoneType; pass an empty"),  # type: ignore[arg-type]
        (lambda: extract(5), r"response: expected a string, got int; pass str\(response\)"),  # type: ignore[arg-type]
        (lambda: extract(b"5"), r"response: .* got bytes; pass response\.decode\(\)"),  # type: ignore[arg-type]
        (lambda: explain(5, "5"), "response: expected a string, got int"),  # type: ignore[arg-type]
        (lambda: parse(5), "text: expected a string, got int"),  # type: ignore[arg-type]
        (lambda: math_verify.parse(5, raise_on_error=True), "pred: expected a string, got int"),  # type: ignore[arg-type]
        (lambda: chosen_letters("A", "lenient"), "'lenient' is unknown"),
        (lambda: chosen_letters(5), r"response: expected a string, got int; pass str"),  # type: ignore[arg-type]
    ]
    for call, message in calls:
        with table.case(message), pytest.raises((ValueError, TypeError), match=message):
            call()


LETTERS = [
    ("The answer is (B) no.", "B"),
    ("None of the above (E)", "E"),
    ("The correct answer is Paris (E).", "E"),
    ("<answer>B. Vitamin C</answer>", "B"),
    (r"\boxed{C. I and II}", "C"),
    ("<answer>D. a long text</answer>", "D"),
    (r"\boxed{A; B}", "AB"),
    (r"\boxed{A (or B)}", "A/B"),
    ("<answer>A\nB</answer>", "AB"),
    ("<answer>A. B. C. D.</answer>", "ABCD"),
    ("(A) or (B)", "A/B"),
    (r"It isn't \boxed{A}", ""),
    ("None of A is correct", ""),
    ("all but A is right", ""),
    ("A is correct? No", ""),
    ("The answer is not Paris (A).", ""),
]


def test_letters(table: Table) -> None:
    """The letters are those that the response chooses: several where it lists them, none where it denies them."""
    for response, letters in LETTERS:
        with table.case(response):
            assert chosen_letters(response) == letters
    with table.case("adjacent letters"):
        assert [chosen_letters("ACD", several=several) for several in (False, True)] == ["", "ACD"]


def test_options() -> None:
    """The options are those of the rules: where the answer is, how far it may be off, and whether it is simplified."""
    assert verify("The answer is 5.", "5", Options("strict")).value == 0.0
    assert verify(r"\boxed{5.1}", "5", Options(tolerance=0.05)).value == 1.0
    assert verify(r"\boxed{2+3}", "5", Options(simplified=True)).reason == "not simplified"


def test_explain() -> None:
    """An explanation holds the verdict and its steps, in JSON types."""
    told = explain(r"\boxed{2\sqrt{2}}", r"\sqrt{8}")
    assert json.loads(json.dumps(told))["found in"] == "\\boxed"
    assert (told["value"], told["how"]) == (1.0, "value")


MODULES = {
    "": [*original.__all__],
    "parser": [
        *("parse", "ExprExtractionConfig", "LatexExtractionConfig", "StringExtractionConfig"),
        *("NormalizationConfig", "ExtractionTarget"),
    ],
    "grader": ["verify"],
    "metric": ["math_metric"],
    "errors": ["TimeoutException"],
    "utils": ["timeout", "TimeoutException"],
}
"""What other projects import from math_verify, by its module."""


def test_modules(table: Table) -> None:
    """Each module of math_verify that others import from is there, with its names."""
    for module, names in MODULES.items():
        ours, theirs = (import_module(f"{one.__name__}.{module}".rstrip(".")) for one in (math_verify, original))
        for name in names:
            with table.case(f"{module}.{name}"):
                assert hasattr(theirs, name)
                assert hasattr(ours, name)


@pytest.mark.parametrize("name", ["parse", "verify", "math_metric"])
def test_signature(name: str) -> None:
    """`parse`, `verify` and `math_metric` take the arguments of math_verify's own, in the same order."""
    ours, theirs = (inspect.signature(getattr(module, name)) for module in (math_verify, original))
    assert list(ours.parameters) == list(theirs.parameters)
    kept = {one: theirs.parameters[one].default for one in theirs.parameters if not re.search("config|target", one)}
    kept = {one: default for one, default in kept.items() if default is not inspect.Parameter.empty}
    assert {one: ours.parameters[one].default for one in kept} == kept


def test_as_math_verify() -> None:
    """A grader that is written for math_verify works with another import line."""
    gold = math_verify.parse(r"$\frac{1}{2}$")
    configs = (math_verify.LatexExtractionConfig(boxed_match_priority=0), math_verify.ExprExtractionConfig())
    answer = math_verify.parse(r"So it is $0.5$.", extraction_config=configs, extraction_mode="first_match")
    assert math_verify.verify(gold, answer)
    assert not math_verify.verify(gold, math_verify.parse("So it is 0.6."))
    assert math_verify.parse("I do not know what to say about it at all.") == []
    anchored = [math_verify.LatexExtractionConfig(try_extract_without_anchor=False)]
    assert math_verify.parse("He then gets $0.5$ of it.", extraction_config=anchored) == []
    assert math_verify.parse(None) == []  # type: ignore[arg-type]
    assert math_verify.verify(0.5, gold)


def test_metric() -> None:
    """The metric scores each response against every gold answer, and refuses a gold text without one."""
    score = math_metric(
        gold_extraction_target=(LatexExtractionConfig(),),
        pred_extraction_target=(ExprExtractionConfig(), LatexExtractionConfig()),
    )
    assert score([r"\boxed{\frac{1}{2}}"], ["So it is 0.5."]) == (1.0, ([r"\frac{1}{2}"], ["0.5"]))
    assert score([r"\boxed{1}", r"\boxed{2}"], ["It is 3.", "It is 2."])[0] == 1.0
    assert math_metric(aggregation_function=min)(["1"], ["1", "2"])[0] == 0.0
    assert score([r"\boxed{1}"], ["I do not know."]) == (0.0, (["1"], []))
    with pytest.raises(ValueError, match="golds: no answer found in 'none at all, I am afraid'"):
        score(["none at all, I am afraid"], ["5"])


def test_timeout() -> None:
    """The time limit lets a function return, and ends one that waits; `except Exception` does not hide it."""
    assert timeout(60)(lambda one: one + 1)(2) == 3
    assert timeout(None)(lambda: 3)() == 3
    assert not issubclass(TimeoutException, Exception)
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutException):
        timeout(1)(signal.pause)()  # expires
    assert signal.getsignal(signal.SIGALRM) is before


def test_readme(table: Table) -> None:
    """Each value that the README shows beside a call is what the call returns."""
    for text in re.findall(r"```python\n(.*?)```", (ROOT / "verifier/README.md").read_text(), re.DOTALL):
        names: dict[str, object] = {}
        lines = text.splitlines()
        for line, behind in zip(lines, [*lines[1:], ""], strict=True):
            call, _, shown = line.partition("  # ")
            shown = shown or behind.removeprefix("# ") if behind.startswith("# ") or shown else ""
            if re.match(r"from |import |\w+ = ", line):
                exec(line, names)  # noqa: S102 - the project's own page
            elif shown:
                with table.case(call):
                    assert repr(eval(call, names)) == shown  # noqa: S307 - the project's own page


@pytest.mark.usefixtures("needs_process")
def test_light() -> None:
    """Importing the package loads neither Flint nor the parser; the first comparison by value does."""
    code = (
        "import sys, rewardstack_verifier as v; before = [*sys.modules]; v.verify('#### 5', '5.0');"
        "print([one for one in ('rewardstack_verifier.api',) if one in before], 'flint' in sys.modules);"
        "v.verify(r'\\boxed{\\sqrt{8}}', r'2\\sqrt{2}'); print('flint' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[] False\nTrue\n"


def test_version() -> None:
    """The version is that of the distribution."""
    assert f'version = "{rewardstack_verifier.__version__}"' in (ROOT / "verifier/pyproject.toml").read_text()
