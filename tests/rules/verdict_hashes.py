"""The cases and labels of the built-in reward functions in `tests/cases`, hashed by file.

    python -m tests.rules.verdict_hashes

rewrites `tests/cases/verdicts.json`. Run it after adding cases or raising VERDICT_VERSION. The tests of each file show
that its verdicts are its labels, so nothing is scored here.
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rewardstack_rules.functions.fingerprint import VERDICT_VERSION

CASES = Path(__file__).parents[1] / "cases"
RECORD = CASES / "verdicts.json"
LABELS = ("right", "same", "value", "parts", "pays")
"""Keys of what a case expects."""
NO_INPUTS = ("reason", "why", "math_verify", "source", *LABELS)
"""Keys that do not change what a case asks."""


FILES = sorted(
    str(path.relative_to(CASES))
    for pattern in ("mathematics/*.json", "values/*.json", "rewards*.json", "hacks.json")
    for path in CASES.glob(pattern)
)


def hashes(name: str) -> dict[str, str]:
    """Return a hash of what the cases of a file ask, and one of their labels."""
    cases = json.loads((CASES / name).read_text())
    asked = [{key: value for key, value in case.items() if key not in NO_INPUTS} for case in cases]
    labels = [{key: case[key] for key in LABELS if key in case} for case in cases]
    return {"cases": _hash(asked), "labels": _hash(labels)}


def _hash(values: list[Any]) -> str:
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m tests.rules.verdict_hashes",
        description="Rewrite tests/cases/verdicts.json. Run it after adding cases or raising VERDICT_VERSION.",
    ).parse_args()
    record = {"version": VERDICT_VERSION, "files": {name: hashes(name) for name in FILES}}
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
