"""Measure the CPU time of reading repeated text: `python -m tests.verifier.repetition_reader < CASES`.

Each line of standard input is a JSON object that `Repetition` describes. Each line of standard output is a list of CPU
seconds, one for each length that was read, or the exception that reading raised. A case that takes more than
`MAX_SECONDS` ends the process.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
from itertools import pairwise
from typing import TypedDict

from rewardstack_verifier.bounds import refusal
from rewardstack_verifier.extraction.choices import chosen_letters
from rewardstack_verifier.extraction.extract import FLEXIBLE, extract_answer, reference_answer
from rewardstack_verifier.question import ask
from rewardstack_verifier.reading.readings import parse_readings

MAX_SECONDS = 60
"""CPU seconds for all lengths of a case; generous: the slowest case takes about two seconds."""
NOISE = 0.01
"""CPU seconds below which a growth says nothing."""
MAX_GROWTH = 25
"""How much longer ten times the text may take: 10 if the time is linear, 100 if it is quadratic."""


class Repetition(TypedDict):
    """Texts that repeat a part.

    Args:
        form: the text, with `{}` in each place of the repetition.
        part: what is repeated.
        lengths: characters of a repetition, each ten times the one before.
    """

    form: str
    part: str
    lengths: list[int]


def is_linear(seconds: list[float]) -> bool:
    """Return whether CPU times of texts, each ten times as long as the one before, grow no faster than the texts."""
    return all(longer <= MAX_GROWTH * max(shorter, NOISE) for shorter, longer in pairwise(seconds))


def measure(case: Repetition) -> list[float]:
    """Return the CPU seconds of each length, up to the first that takes too long for the one before."""
    seconds: list[float] = []
    for length in case["lengths"]:
        if is_linear(seconds):
            repetition = case["part"] * (length // len(case["part"]))
            seconds.append(read(case["form"].replace("{}", repetition)))
    return seconds


def read(text: str) -> float:
    """Read a response, and a reference, up to their parsed answers; return the CPU seconds."""
    start = time.process_time()
    chosen_letters(text)
    ask(text, ["5"])
    for answer in (extract_answer(text), extract_answer(text, FLEXIBLE), reference_answer(text)):
        if answer is not None and not refusal(answer):
            parse_readings(answer)
    return time.process_time() - start


def main() -> None:
    """Read the cases, and print a line for each."""
    gc.disable()
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)  # the signal ends the process, even in native code
        try:
            outcome: list[float] | str = measure(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the test reports it
            outcome = repr(error)
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
