"""Exact algebra and matrices: what they decide is right, and what could be read in two ways they leave alone."""

from __future__ import annotations

import pytest

from benchmarks.mix import KINDS, make_samples
from rewardstack_rules.mathematics import algebra, ask, symbolic
from rewardstack_rules.mathematics.matrices import cells
from rewardstack_rules.mathematics.notation import tidy
from rewardstack_rules.mathematics.question import Question

EQUAL = [
    ("2\\sqrt{3}", "\\sqrt{12}"),
    ("\\frac{6}{\\sqrt{3}}", "2\\sqrt{3}"),
    ("\\sqrt{\\frac{1}{2}}", "\\frac{\\sqrt{2}}{2}"),
    ("(x+2)(x+3)", "x^2+5x+6"),
    ("x(y-1)-xy", "-x"),
    ("(\\sqrt{2}+\\sqrt{3})^2", "5+2\\sqrt{6}"),
    ("\\frac{\\pi}{2}", "\\pi/2"),
    ("0", "x-x"),
]
DIFFERENT = [
    ("2\\sqrt{3}", "3\\sqrt{2}"),
    ("\\sqrt{2}+\\sqrt{3}", "\\sqrt{5}"),
    ("x^2", "x^3"),
    ("ab", "a+b"),
    ("\\frac{355}{113}", "\\pi"),
    ("2x = 2(7-4) = 6", "5"),
]
UNCLEAR = [
    *(
        "2.5",
        "e",
        "2i",
        "x_1",
        "f(x)",
        "\\sin x",
        "1/2x",
        "x2",
        "2\\frac{1}{2}",
        "x^12",
        "x^{y}",
        "2^{3^2}",
        "\\frac{1}{x}",
    ),
    *("\\sqrt{x}", "\\sqrt{-2}", "\\sqrt[3]{2}", "\\frac{1}{0}", "1/(\\sqrt{2}+1)", "(x+y+z+w)^{12}", "\\sqrt{10^{9}}"),
    *("(x", "x)", "", "+", "x+", "\\frac{1}", "5!", "5\\%", "3,4", "A", "(1+x)^{99}", "\\sqrt{99999999999999999999}"),
]
"""Also what is beyond its bounds, and no expression at all."""


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal(one: str, other: str) -> None:
    """The same number or polynomial in two forms is the same."""
    assert algebra.equal(one, other) is True
    assert algebra.equal(other, one) is True


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one: str, other: str) -> None:
    """What differs is told apart, however close it comes."""
    assert algebra.equal(one, other) is False


@pytest.mark.parametrize("text", UNCLEAR)
def test_unclear(text: str) -> None:
    """It decides nothing about what it cannot read in exactly one way, within its bounds."""
    assert algebra.read(text) is None


def test_equation_with_right_end() -> None:
    """An equation that ends in the reference is left to math_verify: only a wrong end is beyond doubt."""
    assert algebra.equal("2x = 10 = 5", "5") is None
    assert algebra.equal("5 = x", "5") is None


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_math_verify(kind: str) -> None:
    """Whatever it decides about generated answers is what math_verify says."""
    samples = [sample for sample in make_samples(1500, seed=23) if sample.kind == kind]
    asked = {
        question for sample in samples if isinstance(question := ask(sample.response, [sample.reference]), Question)
    }
    pairs = [(tidy(question.answer), tidy(question.expected[0])) for question in asked if not question.fault]
    decided = [(pair, verdict) for pair in pairs if (verdict := algebra.equal(*pair)) is not None]

    assert [(pair, verdict) for pair, verdict in decided if symbolic.equal(*pair) is not verdict] == []


def test_matrices() -> None:
    """A matrix is its rows of cells; determinants, ragged rows and nested ones are none."""
    assert cells("\\begin{pmatrix} 1 & -2 \\\\ \\frac{1}{2} & x \\end{pmatrix}") == (("1", "-2"), ("\\frac{1}{2}", "x"))
    assert cells("\\begin{bmatrix} 1 \\\\ 2 \\\\ \\end{bmatrix}") == (("1",), ("2",))
    ragged = "\\begin{pmatrix} 1 & 2 \\\\ 3 \\end{pmatrix}"
    assert [
        cells(text) for text in ("\\begin{vmatrix} 1 \\end{vmatrix}", ragged, "5", "\\begin{pmatrix}1&\\end{pmatrix}")
    ] == [None] * 4
