"""Every verdict over `tests/cases`, in shuffled order and in threads: `python -m tests.verifier.all_verdicts SEED`.

Prints a line with the hash of each file's verdicts, every field of them.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple

from rewardstack_verifier import Options, verify
from rewardstack_verifier.extraction.choices import chosen_letters

CASES = Path(__file__).parents[1] / "cases"
THREADS = 8


class Case(NamedTuple):
    """A response and a reference, by the file that holds them and their place in it."""

    file: str
    place: int
    response: str
    reference: str
    extraction: str


def cases() -> list[Case]:
    """Return the cases of whole responses and of values, the latter in a box."""
    found = []
    for path in sorted([*CASES.glob("mathematics/*.json"), *CASES.glob("values/*.json")]):
        for place, one in enumerate(json.loads(path.read_text())):
            response = one["response"] if "response" in one else f"\\boxed{{{one['answer']}}}"
            extraction = one.get("extraction", Options().extraction)
            found.append(Case(path.stem, place, response, one["reference"], extraction))
    return found


def main(seed: int) -> None:
    """Print the hash of each file's verdicts."""
    shuffled = cases()
    Random(seed).shuffle(shuffled)
    with ThreadPoolExecutor(THREADS) as pool:
        verdicts = list(pool.map(_verdict, shuffled))
    by_file: dict[str, list[str]] = {}
    for case, verdict in sorted(zip(shuffled, verdicts, strict=True)):
        by_file.setdefault(case.file, []).append(verdict)
    for file, lines in by_file.items():
        print(file, len(lines), blake2b("\n".join(lines).encode(), digest_size=16).hexdigest())


def _verdict(case: Case) -> str:
    verdict = verify(case.response, case.reference, Options(case.extraction))
    return repr((*verdict, chosen_letters(case.response, case.extraction)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
