"""All that reads a response before the isolated parser takes time linear in its length."""

from __future__ import annotations

import subprocess
import sys

import pytest

LENGTH = 1_000_000
"""Characters: a reader that goes back over the text for every character of it would take hours."""
SECONDS = 60
"""Generous: the slowest of these takes about a second."""

READ = """
import sys
from rewardstack_rules.mathematics.bounds import refusal
from rewardstack_rules.mathematics.comparison.compare import readings
from rewardstack_rules.mathematics.extraction.extract import extract_answer, reference_answer
text = sys.stdin.read()
answers = extract_answer(text), reference_answer(text)
for answer in answers:
    if answer is not None and not refusal(answer):
        readings(answer)
"""
PARTS = [
    "<answer>",
    "</answer>",
    "<answer></answer>",
    "<think>",
    "</think>",
    "\\boxed{",
    "\\boxed{}",
    "\\boxed{1}",
    "\\boxed{1} and ",
    "\\boxed{1}, ",
    "\\boxed ",
    "\\boxed{ } ",
    "\\fbox{\\boxed{",
    "{",
    "}",
    "$",
    "$ ",
    "$ \\a",
    "\\a",
    "$1",
    "$ 1 ",
    "$ {x}",
    "$x\\$ ",
    "\\(",
    "\\( \\",
    "\\[",
    "\\[ x \\( ",
    "the answer is ",
    "answer to ",
    "answer to the ",
    "final answer: ",
    "The final answer is the ",
    "#### ",
    "####",
    "答案",
    "<|x|>",
    "<|",
    "-",
    "- ",
    "1,",
    "1, ",
    "1/",
    ".",
    "a ",
    "and ",
    "1 and ",
    "$1$ or ",
    "is ",
    "not 1 ",
    "**a** ",
    "word, ",
    "0.3",
    "wait, ",
    "so ",
    "but 1 ",
    "the probability ",
    "1 in 2 ",
    " (since 3",
    ", when ",
    "too many ",
    "1 is not the ",
    "Step 1: ",
    "has no ",
    "a = ",
    "5 cm ",
    "½",
    "e.g. ",
    "\n\nCheck: ",
    "I hope this ",
    "zwei Drittel ",
    "ist nicht 5, ",
    ", also, ",
    "wenn 1 ",
    "1.000 ",
    "1 000 ",
    "nein, ",
    "Ответ: ",
    "и 1 ",
    "3万2千",
    "三分之",
    "一",
    "は 5 ではない",
    "삼십 ",
    "3 लाख ",
    "ثلاثة و",
    "\\",
    "\\\\",
    "\n",
    " ",
]
PREFIXES = ["", "Answer: ", "\\boxed{1}", "$ ", "\\boxed", "<answer>"]


@pytest.mark.parametrize("part", PARTS)
def test_repetitions_are_read_at_once(part: str) -> None:
    """A million characters of one part, behind whatever opens an answer, are read."""
    for prefix in PREFIXES:
        text = prefix + part * ((LENGTH - len(prefix)) // len(part))
        done = subprocess.run(
            [sys.executable, "-c", READ],
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert (0, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize("part", PARTS)
def test_short_repetitions_are_read_at_once(part: str) -> None:
    """Within the bounds on an answer, notation is read without going back."""
    text = f"\\boxed{{{part * (990 // len(part))}}}\n\n{part * (990 // len(part))}"
    subprocess.run(
        [sys.executable, "-c", READ],
        input=text.encode(),
        check=True,
        timeout=SECONDS,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
