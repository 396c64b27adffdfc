"""Answers are compared by their values: numbers exactly, functions at points, what has parts by its parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rewardstack_rules.mathematics.comparison.compare import compare, readings
from rewardstack_rules.mathematics.extract import reference_answer
from rewardstack_rules.mathematics.reading.syntax import NamedSet
from rewardstack_rules.mathematics.reading.undone import undone
from tests.mathematics.test_cases import CASES as VERDICTS

FILES = sorted((Path(__file__).parents[1] / "cases" / "values").glob("*.json"))
CASES = [case for path in FILES for case in json.loads(path.read_text())]
WRITINGS: dict[str, Callable[[str], str]] = {
    "bold": lambda text: f"\\mathbf{{{text}}}",
    "a bold symbol": lambda text: f"\\boldsymbol{{{text}}}",
    "a colour": lambda text: f"{{\\color{{blue}} {text}}}",
    "a colour as a command": lambda text: f"\\textcolor{{red}}{{{text}}}",
    "braces": lambda text: f"{{{text}}}",
    "two pairs of braces": lambda text: f"{{{{{text}}}}}",
    "an underline": lambda text: f"\\underline{{{text}}}",
    "a box": lambda text: f"\\boxed{{{text}}}",
    "thin spaces": lambda text: f"\\,{text}\\,",
    "a negative space": lambda text: f"\\!{text}",
    "wide spaces": lambda text: f"\\quad {text}\\qquad",
    "dollars": lambda text: f"${text}$",
    "two dollars": lambda text: f"$$ {text} $$",
    "parentheses of LaTeX": lambda text: f"\\( {text} \\)",
    "a displayed formula": lambda text: f"\\[ {text} \\]",
    "display style": lambda text: f"\\displaystyle {text}",
    "something hidden": lambda text: f"{text}\\phantom{{9}}",
    "a full stop": lambda text: f"{text}.",
    "full-width digits": lambda text: text.translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
    "the typographic minus sign": lambda text: text.replace("-", "\u2212"),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "characters of no width": lambda text: f"\u200b{text}\ufeff",
}
NEAR = 10_000
"""Pairs of numbers and functions that are nearly equal."""


@pytest.mark.parametrize("case", CASES, ids=[f"{case['answer']} | {case['reference']}" for case in CASES])
def test_values(case: dict[str, Any]) -> None:
    """Two answers are the same, are not, or it is left to their texts, as the data says with a reason."""
    assert compare(case["answer"], case["reference"]) is case["same"], case["reason"]


def test_either_order() -> None:
    """Which of two is the answer matters only for decimals, work that is left undone, and where `turned` says so."""
    exact = [case for case in CASES if "." not in case["answer"] + case["reference"] and _is_done(case)]
    verdicts = [(case, compare(case["reference"], case["answer"])) for case in exact]
    turned = [case for case, verdict in verdicts if verdict is not case.get("turned", case["same"])]
    assert turned == []


def _is_done(case: dict[str, Any]) -> bool:
    return undone(case["answer"]) == undone(case["reference"])


@pytest.mark.parametrize("write", WRITINGS.values(), ids=WRITINGS)
def test_how_it_is_written(write: Callable[[str], str]) -> None:
    """What changes the looks of an expression and not its meaning changes no verdict on it."""
    references = {reference_answer(case["reference"]) for case in VERDICTS}
    compared = sorted(reference for reference in references if compare(reference, reference))
    compared = [one for one in compared if NamedSet("empty") not in readings(one)]  # braces may be those of a set
    assert len(compared) > 800
    assert [one for one in compared if compare(write(one), one) is not True] == []


def test_near_misses() -> None:
    """Of numbers and functions that differ by very little none is taken for equal."""
    random = Random(18)
    taken = []
    for answer, reference in (_near_miss(random) for _ in range(NEAR)):
        if compare(answer, reference) is not False:
            taken.append((answer, reference))
    assert taken == []


def _near_miss(random: Random) -> tuple[str, str]:
    """An expression, and one that differs by 10^-k, by one in a large integer, by a high frequency, or by a sign."""
    number = random.choice(
        [f"\\sqrt{{{random.randint(2, 99)}}}", f"\\frac{{{random.randint(1, 99)}}}{{7}}", "\\pi", "e"]
    )
    term = random.choice(["\\sin x", "x^2", "\\sqrt{x^2+1}", "e^{x}", "\\ln(x^2+1)"])
    large = random.randint(10**30, 10**60)
    k = random.randint(7, 300)
    return random.choice(
        [
            (f"{number}+10^{{-{k}}}", number),
            (f"{term}+10^{{-{k}}}", term),
            (f"{number}(1+10^{{-{k}}})", number),
            (str(large + 1), str(large)),
            (f"{large + 1}x", f"{large}x"),
            (f"{large + 1}{term}", f"{large}{term}"),
            (f"{term}+\\sin({random.randint(10, 10**6)}\\pi x)", term),
            (f"{term}+|x|-x", term),
            (f"{term}+\\sqrt{{x^2}}+x", term),
        ]
    )


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "9^{9^{9^{9}}}",
            "((((10!)!)!)!)!",
            "10^{10^{10}}",
            "\\binom{10^9}{5*10^8}",
            "x^{x^{x^{x}}}",
            "1e999",
            "(1e999)!",
        ),
        *("\\sin(10^{10^{6}})", "e^{e^{e^{e^{e}}}}", "\\sqrt[1000]{2}+\\sqrt[999]{3}", "|" * 20, "(" * 30, "-" * 900),
    ],
)
def test_hostile_answers(answer: str) -> None:
    """An answer made to take for ever is not: it is wrong, or left open."""
    assert compare(answer, "\\frac{1}{3}") is not True
