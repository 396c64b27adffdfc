"""The verdicts of the built-in reward functions over `tests/cases`, hashed by file.

    python -m tests.rules.verdict_hashes

rewrites `tests/cases/verdicts.json`. Run it after adding cases or raising VERDICT_VERSION.
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.fingerprint import VERDICT_VERSION
from rewardstack_rules.scoring.task import evaluate

CASES = Path(__file__).parents[1] / "cases"
RECORD = CASES / "verdicts.json"
Input = tuple[str, str, list[str], dict[str, Any]]
"""The rule, the response, the references and `extra_info`."""


FILES = sorted(
    str(path.relative_to(CASES))
    for pattern in ("mathematics/*.json", "values/*.json", "rewards*.json", "hacks.json")
    for path in CASES.glob(pattern)
)


def inputs(name: str) -> list[Input]:
    """Return what the cases of a file ask."""
    cases = json.loads((CASES / name).read_text())
    if name.startswith("mathematics/"):
        modes = [{"extraction": one["extraction"]} if "extraction" in one else {} for one in cases]
        return [("math", one["response"], [one["reference"]], mode) for one, mode in zip(cases, modes, strict=True)]
    if name.startswith("values/"):
        return [("math", f"\\boxed{{{one['answer']}}}", [one["reference"]], {}) for one in cases]
    return [
        (one.get("rule") or one["function"], one["response"], one["references"], one.get("extra", {})) for one in cases
    ]


def hashes(name: str) -> dict[str, str]:
    """Return a hash of what the cases of a file ask, and one of the verdicts on them."""
    registry, asked = load_registry([]), inputs(name)
    verdicts = [
        evaluate(registry.get(rule), response, references, extra).as_dict()
        for rule, response, references, extra in asked
    ]
    return {"cases": _hash(asked), "verdicts": _hash(verdicts)}


def _hash(values: list[Any]) -> str:
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m tests.rules.verdict_hashes",
        description="Rewrite tests/cases/verdicts.json. Run it after adding cases or raising VERDICT_VERSION.",
    ).parse_args()
    record = {"version": VERDICT_VERSION, "files": {name: hashes(name) for name in FILES}}
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
