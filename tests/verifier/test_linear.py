"""All that reads a response before the isolated parser takes time linear in its length."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.table import Table
from tests.verifier.repetition_reader import Repetition, is_linear

LENGTHS = [10_000, 100_000, 1_000_000]
"""Characters: a reader that goes back over the text for every character of it would take hours for the longest."""
SHORT_LENGTHS = [99, 990]
"""Characters within the bounds on an answer, so that it is parsed."""
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
@pytest.mark.timeout(1200)
def test_repetitions_are_read_in_linear_time(table: Table) -> None:
    """Ten times the text of one part, behind whatever opens an answer, takes about ten times the CPU time to read."""
    long = [Repetition(form=f"{prefix}{{}}", part=part, lengths=LENGTHS) for part in PARTS for prefix in PREFIXES]
    check(long, table)


@pytest.mark.nightly
def test_short_repetitions_are_parsed_in_linear_time(table: Table) -> None:
    """Ten times the notation, within the bounds on an answer, takes about ten times the CPU time to parse."""
    check([Repetition(form="\\boxed{{}}\n\n{}", part=part, lengths=SHORT_LENGTHS) for part in PARTS], table)


def check(cases: list[Repetition], table: Table) -> None:
    """Check that each case is read to its end, without an error, in linear time."""
    for case, outcome in measurements(cases):
        with table.case(f"{case['part']!r} in {case['form']!r}"):
            assert isinstance(outcome, list), outcome
            assert is_linear(outcome), f"CPU seconds of {case['lengths']} characters: {outcome}"
            assert len(outcome) == len(case["lengths"])


def measurements(cases: list[Repetition]) -> Iterator[tuple[Repetition, list[float] | str]]:
    """Yield what a child process measures for each case, or what went wrong; a case that ends the child costs one."""
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
