"""`python -m tests.mutants`: apply each mutant of the code to this checkout and print whether the tests notice it.

`mutants.json` holds 19 mutants, of 20 chosen with the seed 33 among all comparisons, boolean and arithmetic operators,
conditional expressions and return values of client/ and services/ at c91510b, one in each file, with the tests that
cover the file; the file of one is gone. A line that has changed since then has a mutation of the same kind. A change of
the tests kills as many as before. Run it in a clone: files change while it runs.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TIERS = {
    "make check": "not (process or stack or engine or model or nightly)",
    "make test": "(process or stack or engine) and not (model or nightly)",
    "make nightly": "nightly and not model",
}
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def main() -> None:
    """Print a row for each mutant: the command that kills it and the first test that fails, or `survived`."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="checkout to change, with its own .venv")
    parser.add_argument("numbers", nargs="*", type=int, help="of the mutants; default: all")
    options = parser.parse_args()
    mutants = json.loads((Path(__file__).parent / "mutants.json").read_text())
    for number, mutant in enumerate(mutants):
        if not options.numbers or number in options.numbers:
            with applied(options.root, mutant):
                print(f"{number:2} {mutant['file']}:{mutant['line']}  {killer(options.root, mutant)}", flush=True)


@contextmanager
def applied(root: Path, mutant: dict[str, Any]) -> Iterator[None]:
    """Replace the mutant's line in its file, and restore the file afterwards.

    Raises:
        ValueError: the file no longer has that line exactly once.
    """
    path = root / mutant["file"]
    text = path.read_text(encoding="utf-8")
    if text.count(mutant["before"] + "\n") != 1:
        raise ValueError(f"{path}: the line of the mutant is not there exactly once: {mutant['before']}")
    try:
        path.write_text(text.replace(mutant["before"] + "\n", mutant["after"] + "\n"), encoding="utf-8")
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def killer(root: Path, mutant: dict[str, Any]) -> str:
    """Return which tests kill the mutant that is applied, or `survived`."""
    for tier, markers in TIERS.items():
        command = [".venv/bin/python", "-m", "pytest", "-x", "-q", "-n2", "-p", "no:cacheprovider"]
        command += [*mutant["tests"], "-m", markers]
        done = subprocess.run(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode not in (0, 5):  # 5: no test has these markers
            found = FAILED.search(done.stdout)
            return f"killed by {tier}: {found[1] if found else f'pytest exited with {done.returncode}'}"
    return "survived"


if __name__ == "__main__":
    main()
