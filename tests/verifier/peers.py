"""Pairs and references of other projects' test suites, compared with what this verifier says.

math_verify distributes its tests on PyPI. Every other suite is a file of a folder that `PEER_SUITES` names, which is
filled by hand and is no part of the repository:

- `NAME.jsonl`: pairs `{"id", "response", "reference", "expected", "kind"}`, with a relative `tolerance` where the suite
  has one. `expected` is true or false. The kind is `answer` (to be boxed), `response` (a whole one, extracted as
  `flexible`) or `choice` (the same, for the letter of an option).
- `NAME.references.jsonl`: references `{"id", "reference"}` of data sets.

`tests/cases/peer_disagreements.json` has the pairs that are decided otherwise: suite, id and hash, by reason. The
fault is `ours`, a `convention` of the suite that is not this verifier's, or a wrong `label`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rewardstack_rules.functions.builtin.multiple_choice import multiple_choice
from rewardstack_rules.functions.outcome import Unscored
from rewardstack_verifier import Options, verify
from rewardstack_verifier.extraction.extract import FLEXIBLE, STRICT

ROOT = Path(__file__).parents[2]
DISAGREEMENTS = ROOT / "tests/cases/peer_disagreements.json"
FAULTS = ("ours", "convention", "label")
REFERENCES = ".references"
DISTRIBUTED = "math-verify"
"""The suite that PyPI has, in the source distribution of this name."""
TIMEOUT = 120
"""Seconds for downloading it."""


class Pair(NamedTuple):
    """A response of a peer's suite, and what the suite expects.

    Args:
        id: where it is: file, test and position.
        response: a whole response, or an answer without a mark.
        reference: as the suite has it.
        expected: whether the suite says that it is right.
        kind: `answer`, `response` or `choice`.
        tolerance: relative; None for the default.
    """

    id: str
    response: str
    reference: str
    expected: bool
    kind: str = "response"
    tolerance: float | None = None

    @property
    def hash(self) -> str:
        """What the disagreements know it by."""
        text = json.dumps([self.kind, self.response, self.reference, self.expected, self.tolerance])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class Agreement(NamedTuple):
    """How a suite was decided.

    Args:
        pairs: how many there are.
        unexplained: those that are decided otherwise without a reason.
        reasons: of the others that are decided otherwise.
        stale: ids of the reasons whose pair is decided as expected.
    """

    pairs: int
    unexplained: list[str]
    reasons: Counter[str]
    stale: list[str]

    def line(self, suite: str) -> str:
        """Return how many pairs agree, in a line."""
        agreed = self.pairs - len(self.unexplained) - self.reasons.total()
        others = f"{self.reasons.total()} differ for a known reason, {len(self.unexplained)} for none"
        return f"{suite}: {agreed} of {self.pairs} pairs agree, {others}"


def load_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a file."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Pair(**{name: value for name, value in row.items() if name in Pair._fields}) for row in rows]


def load_references(path: Path) -> dict[str, str]:
    """Return the references of a file by their ids."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["reference"] for row in rows}


def load_reasons() -> dict[str, str]:
    """Return the reason of each known disagreement by its hash."""
    groups = json.loads(DISAGREEMENTS.read_text(encoding="utf-8"))
    return {pair.rpartition(" ")[2]: group["reason"] for group in groups for pair in group["pairs"]}


def decide(pair: Pair) -> bool:
    """Return whether this verifier says that a response is right."""
    if pair.kind == "choice":
        try:
            return multiple_choice(pair.response, pair.reference, FLEXIBLE).value == 1
        except Unscored:
            return False
    boxed = pair.kind == "answer"
    response = rf"\boxed{{{pair.response}}}" if boxed else pair.response
    return verify(response, pair.reference, Options(STRICT if boxed else FLEXIBLE, pair.tolerance)).value == 1


def compare(pairs: list[Pair], reasons: dict[str, str]) -> Agreement:
    """Return how the pairs are decided, against what their suite expects."""
    unexplained, explained, stale = [], Counter[str](), []
    for pair in pairs:
        reason = reasons.get(pair.hash)
        if decide(pair) is pair.expected:
            stale += [f"{pair.id} {pair.hash}"] if reason else []
        elif reason:
            explained[reason] += 1
        else:
            unexplained.append(f"{pair.id} {pair.hash}: {pair.response[-200:]!r} for {pair.reference[:200]!r}")
    return Agreement(len(pairs), unexplained, explained, stale)


def wrong_references(references: dict[str, str]) -> list[str]:
    """Return the references that are not right for themselves, in a box."""
    return [
        f"{place}: {reference!r}"
        for place, reference in references.items()
        if verify(rf"\boxed{{{reference}}}", reference, Options(STRICT)).value != 1
    ]


def download(folder: Path) -> Path | None:
    """Return the tests that math_verify distributes, unpacked; None where PyPI has no answer."""
    pinned = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith(DISTRIBUTED))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", ":all:", "--dest", str(folder), pinned]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
    except (subprocess.SubprocessError, OSError):
        return None
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.glob("*/tests"))


def distributed_pairs(tests: Path) -> list[Pair]:
    """Return the pairs in the parametrized tests of math_verify; no code of it is run."""
    pairs = [pair for path in sorted(tests.glob("test_*.py")) for pair in _parametrized(path)]
    return list({pair.hash: pair for pair in pairs}.values())


def _parametrized(path: Path) -> Iterator[Pair]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for test in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for call in (node for node in test.decorator_list if isinstance(node, ast.Call) and len(node.args) == 2):
            names = [name.strip() for name in _literal(call.args[0], "").split(",")]
            for place, row in enumerate(getattr(call.args[1], "elts", ())):
                values = dict(zip(names, _literal(row, ()), strict=False))
                expected = values.get("expected", values.get("result"))
                if {"gold", "pred"} <= values.keys() and expected in (0, 1):
                    yield Pair(f"{path.stem}::{test.name}[{place}]", values["pred"], values["gold"], bool(expected))


def _literal(node: ast.expr, other: Any) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return other
