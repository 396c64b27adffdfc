"""Other projects' test suites: this verifier agrees with them, or the data says why not."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.table import Table
from tests.verifier import peers

FOLDER = Path(os.environ["PEER_SUITES"]) if os.environ.get("PEER_SUITES") else None
PATHS = sorted(FOLDER.glob("*.jsonl")) if FOLDER else []
SUITES = [path for path in PATHS if not path.stem.endswith(peers.REFERENCES)]
NO_SUITES = "PEER_SUITES names no folder with suites"


def assert_agreement(suite: str, pairs: list[peers.Pair], capsys: pytest.CaptureFixture[str]) -> None:
    """Print how a suite agrees; each pair that is decided otherwise has a reason, and no other has."""
    agreement = peers.compare(pairs, peers.load_reasons())
    with capsys.disabled():
        print(f"\n{agreement.line(suite)}", file=sys.stderr)
    assert agreement.pairs
    assert agreement.unexplained == []
    assert agreement.stale == []


@pytest.mark.nightly
def test_distributed_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """math_verify's own pairs are decided as it says, but for those with a reason."""
    tests = peers.download(tmp_path)
    if tests is None:
        pytest.skip(f"PyPI does not give {peers.DISTRIBUTED}'s source distribution")
    assert_agreement(f"{peers.DISTRIBUTED} (PyPI)", peers.distributed_pairs(tests), capsys)


@pytest.mark.nightly
@pytest.mark.skipif(not SUITES, reason=NO_SUITES)
@pytest.mark.parametrize("path", SUITES, ids=[path.stem for path in SUITES])
def test_suite(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pairs of a suite are decided as it says, but for those with a reason."""
    assert_agreement(path.stem, peers.load_pairs(path), capsys)


@pytest.mark.nightly
@pytest.mark.skipif(not PATHS, reason=NO_SUITES)
def test_references(table: Table) -> None:
    """Each reference of a data set, boxed as it is, is right."""
    for path in PATHS:
        if path.stem.endswith(peers.REFERENCES):
            with table.case(path.stem):
                assert peers.wrong_references(peers.load_references(path)) == []


def test_disagreements_have_reasons() -> None:
    """Each group of disagreements has a fault, a reason and pairs, and no pair is in two."""
    groups = json.loads(peers.DISAGREEMENTS.read_text())
    assert all(group["fault"] in peers.FAULTS and group["reason"] and group["pairs"] for group in groups)
    hashes = [pair.rpartition(" ")[2] for group in groups for pair in group["pairs"]]
    assert len(set(hashes)) == len(hashes)


def test_unknown_disagreement() -> None:
    """A pair that is decided otherwise needs a reason, and a reason needs such a pair."""
    wrong = peers.Pair("wrong", "5", "6", True, "answer")
    right = peers.Pair("right", "The answer is 5.", "5", True)
    letter = peers.Pair("letter", "I choose (B).", "B", True, "choice")

    none = peers.compare([wrong, right, letter], {})
    all_known = peers.compare([wrong, right, letter], {wrong.hash: "a reason", letter.hash: "another"})

    assert [text.partition(" ")[0] for text in none.unexplained] == ["wrong"]
    assert (all_known.unexplained, all_known.reasons) == ([], {"a reason": 1})
    assert all_known.stale == [f"letter {letter.hash}"]


def test_distributed_pairs_are_read(tmp_path: Path) -> None:
    """Literal rows of parametrized tests with `gold` and `pred` are pairs; others are passed over."""
    (tmp_path / "test_some.py").write_text(
        '@pytest.mark.parametrize("gold, pred, expected", [("$1$", "$2$", 0), (f"{x}", "1", 1)])\n'
        "def test_pairs(gold, pred, expected): ...\n"
        '@pytest.mark.parametrize("pred, expected", [("A", ["a"])])\n'
        "def test_others(pred, expected): ...\n"
    )
    assert peers.distributed_pairs(tmp_path) == [peers.Pair("test_some::test_pairs[0]", "$2$", "$1$", False)]
