"""Which part of a response is its answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardstack_verifier import Options, verify
from rewardstack_verifier.extraction.extract import extract_answer, extract_boxed
from tests.support.table import Table

CASES = [
    # marks
    ("So $\\boxed{5}$.", "5"),
    ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
    ("\\fbox{5}", "5"),
    ("\\boxed {5}", "5"),
    ("\\boxed{\\{1,2\\}}", "\\{1,2\\}"),
    ("\\boxed{5} or so, \\boxed{", "5"),
    ("\\boxed{5} then \\boxed{}", "5"),
    ("\\boxed{1} and \\boxed{2}", "1 and 2"),
    ("$\\boxed{1}$, $\\boxed{2}$", "1, 2"),
    ("\\boxed{1}. Wait: \\boxed{2}", "2"),
    ("\\boxed{1}\n\n\\boxed{2}", "2"),
    ("<answer>5</answer>", "5"),
    ("<answer>The answer is 5.</answer>", "5"),
    ("<answer>\\boxed{5}</answer>", "5"),
    ("\\boxed{6} <answer>5</answer>", "5"),
    ("<answer>6</answer> \\boxed{5}", "5"),
    ("a\n#### 1,234\nb", "1,234"),
    ("#### 5\nThe answer is 6.", "5"),
    # what is told
    ("The answer is $x=1$ and $x=2$.", "x=1 and x=2"),
    ("The answers are $1$, $2$ and $3$.", "1 and 2 and 3"),
    ("Answer:\n42", "42"),
    ("The answer is 10 weeks.", "10 weeks"),
    ("The answer is 5 or 6", "5 or 6"),
    ("The answer is 3/4 of the cake.", "3/4"),
    ("The answer is therefore 7", "7"),
    ("The answer is 2 + 3 = 5.", "2 + 3 = 5"),
    ("The answer is Friday.", "Friday"),
    ("The answer to the second part is \\(7\\).", "7"),
    ("The answer is 6. No, the answer is 7.", "7"),
    # bare answers, and the last expression
    ("x+1", "x+1"),
    ("(1,2)", "(1,2)"),
    ("10 square meters", "10 square meters"),
    (
        "Then \\[ A = \\begin{pmatrix} 1 \\\\[2pt] 2 \\end{pmatrix} \\]",
        "A = \\begin{pmatrix} 1 \\\\[2pt] 2 \\end{pmatrix}",
    ),
    ("So she has 5 apples", None),
    # thought
    ("<think>\\boxed{3}</think> So it is 4.", "4"),
    ("<think>\\boxed{3}</think>", "3"),
    # nothing
    ("", None),
    (" \n", None),
    ("I have no idea how to do any of this at all, sorry.", None),
]


FLEXIBLE_CASES = [
    ("So she has 5 apples", "5"),
    ("So $x = 3$ is the value", "x = 3"),
    ("Then $$x = \\frac{3}{4}$$ as claimed.", "x = \\frac{3}{4}"),
    ("we get 3 - 5 = -2", "-2"),
    ("It is between 3-5", "5"),
    ("He saved 50% there.", "50%"),
    ("The answer is 7, not 8. Check: 3 + 4.", "7"),
    ("\\boxed{7} is 3 + 4", "7"),
]


def test_extract(table: Table) -> None:
    """The answer is the part that the module's docstring says."""
    for response, expected in CASES:
        with table.case(repr(response)):
            assert extract_answer(response) == expected


def test_flexible(table: Table) -> None:
    """Flexible extraction takes the last formula or number where nothing marks or announces an answer."""
    for response, expected in FLEXIBLE_CASES:
        with table.case(repr(response)):
            assert extract_answer(response, "flexible") == expected


STRICT_CASES = [
    ("\\boxed{5}. The final answer is 6.", "5"),
    ("The answer is 5.", None),
    ("5", None),
    ("#### 5", "5"),
    ("<answer>5</answer>", "5"),
]


def test_strict(table: Table) -> None:
    """Strict extraction takes a box, an answer tag or a `####` line, and nothing else."""
    for response, expected in STRICT_CASES:
        with table.case(repr(response)):
            assert extract_answer(response, "strict") == expected


def test_endless_box() -> None:
    """A box beyond every bound is cut off rather than read to its end, and still too long."""
    assert 1_000 < len(extract_boxed("\\boxed{" + "1" * 1_000_000 + "}") or "") < 30_000


@pytest.mark.parametrize(
    "text",
    ["It is %s million.", "Es sind %s Millionen.", "所以是%s万。", "概率是3分之%s。", "It is %s hours and a half."],
)
def test_endless_numbers(text: str) -> None:
    """Numbers of more digits than Python turns into text are read without an error, whatever words make them larger."""
    assert verify(text % ("9" * 10_000), ["5"]).right is False


CLOSINGS = json.loads((Path(__file__).parents[1] / "cases" / "closings.json").read_text())
"""What models close with, and answers that stand in the box."""
WORKING = "We set up the equation and solve it step by step, which gives the value below.\n\n"
BOX = "\\boxed{%s}"


def test_without_boxes() -> None:
    """Without the boxes that strict extraction needs, flexible extraction keeps 99 % of what models say."""
    pairs = [(closing, answer) for closing in CLOSINGS["closings"] for answer in CLOSINGS["answers"]]
    boxed_ones = [(WORKING + closing % answer, answer) for closing, answer in pairs]
    bare_ones = [(WORKING + closing.replace(BOX, "%s") % answer, answer) for closing, answer in pairs]
    assert all(verify(response, [answer], Options("strict")).right for response, answer in boxed_ones)
    flexible = Options("flexible")
    assert sum(verify(response, [answer], flexible).right is True for response, answer in bare_ones) >= 0.99 * len(
        pairs
    )
