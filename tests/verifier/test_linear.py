"""All that reads a response before the isolated parser takes time linear in its length."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.table import Table
from tests.verifier.repetition_reader import Repetition

LENGTH = 1_000_000
"""Characters, which are read in two seconds at most. A reader that goes back over the text for every part of ten
characters takes 50 billion steps: minutes, if a step takes more than two nanoseconds; one that does so for every
character takes hours."""
SHORT_LENGTH = 990
"""Characters within the bounds on an answer, so that it is parsed, in milliseconds."""
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
    "<|im_end|>",
    "<|im_start|>assistant\n",
    "<|im_start|>user\n",
    "<|channel|>final<|message|>1",
    "</s>",
    "[INST]",
    "[/THINK]",
    "<tool_response>",
    "</tool_response>",
    "<result>1</result>",
    "</code><output>",
    "\n```output\n",
    "\n\nUser:",
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
    "选项:",
    "answer: option ",
    "I choose ",
    "A is correct ",
    "5 is the answer ",
    "(A) or ",
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


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_repetitions_are_read_in_linear_time(table: Table) -> None:
    """A long text of one part, behind whatever opens an answer, is read: in quadratic time it would not be."""
    check([Repetition(form=f"{prefix}{{}}", part=part, length=LENGTH) for part in PARTS for prefix in PREFIXES], table)


@pytest.mark.nightly
def test_short_repetitions_are_parsed(table: Table) -> None:
    """The longest repetition within the bounds on an answer is parsed: in exponential time it would not be."""
    check([Repetition(form="\\boxed{{}}\n\n{}", part=part, length=SHORT_LENGTH) for part in PARTS], table)


def check(cases: list[Repetition], table: Table) -> None:
    """Check that each case is read to its end, without an error."""
    for case, error in errors(cases):
        with table.case(f"{case['part']!r} in {case['form']!r}"):
            assert error is None


def errors(cases: list[Repetition]) -> Iterator[tuple[Repetition, str | None]]:
    """Yield None for each case that a child process reads, or what went wrong; a case that ends the child costs one."""
    while cases:
        done = subprocess.run(
            [sys.executable, "-m", "tests.verifier.repetition_reader"],
            input="".join(json.dumps(case) + "\n" for case in cases),
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        yield from zip(cases, outcomes, strict=False)
        if len(outcomes) < len(cases):
            yield cases[len(outcomes)], f"the child process ended with {done.returncode}: {done.stderr}"
        assert done.stderr == ""
        cases = cases[len(outcomes) + 1 :]
