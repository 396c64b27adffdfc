"""Read repeated text: `python -m tests.verifier.repetition_reader < CASES`.

Each line of standard input is a JSON object that `Repetition` describes. Each line of standard output is null, or the
exception that reading raised. A case that takes more than `MAX_SECONDS` of CPU time ends the process.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import TypedDict

from rewardstack_verifier.bounds import refusal
from rewardstack_verifier.extraction.choices import chosen_letters
from rewardstack_verifier.extraction.extract import FLEXIBLE, extract_answer, reference_answer
from rewardstack_verifier.question import ask
from rewardstack_verifier.reading.readings import parse_readings

MAX_SECONDS = 120
"""CPU seconds for a case; the slowest takes about two seconds."""


class Repetition(TypedDict):
    """A text that repeats a part.

    Args:
        form: the text, with `{}` in each place of the repetition.
        part: what is repeated.
        length: characters of a repetition.
    """

    form: str
    part: str
    length: int


def read(case: Repetition) -> None:
    """Read a response, and a reference, up to their parsed answers."""
    text = case["form"].replace("{}", case["part"] * (case["length"] // len(case["part"])))
    chosen_letters(text)
    ask(text, ["5"])
    for answer in (extract_answer(text), extract_answer(text, FLEXIBLE), reference_answer(text)):
        if answer is not None and not refusal(answer):
            parse_readings(answer)


def main() -> None:
    """Read the cases, and print a line for each."""
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)  # the signal ends the process, even in native code
        outcome: str | None = None
        try:
            read(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the test reports it
            outcome = repr(error)
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
