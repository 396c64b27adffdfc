"""What type checkers make of the functions that trainers call."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("needs_process")

SINGLE, DETAILS = "float | None", "dict[str, float | None]"
CALLS = {
    'compute_score("gsm8k", "#### 4", "4")': SINGLE,
    'compute_score(data_source="gsm8k", solution_str="a", ground_truth=["4"], extra_info={"a": 1})': SINGLE,
    'compute_score("gsm8k", "#### 4", "4", on_error="none", timeout=3.0)': SINGLE,
    'compute_score("gsm8k", "#### 4", "4", details=True)': DETAILS,
    'compute_score(data_sources="gsm8k", solution_strs=["a"])': f"list[{SINGLE}]",
    'compute_score(data_sources=["gsm8k"], solution_strs=["a"], details=True)': f"list[{DETAILS}]",
    'compute_score("gsm8k", ["a", "b"])': "Any",
    'compute_score_batched(["gsm8k"], ["a"], ["4"])': f"list[{SINGLE}]",
    'compute_score_batched(["gsm8k"], ["a"], ["4"], details=True)': f"list[{DETAILS}]",
    'await acompute_score("gsm8k", "#### 4", "4")': SINGLE,
    'await acompute_score_batched(["gsm8k"], ["a"], details=True)': f"list[{DETAILS}]",
}


@pytest.fixture(scope="module")
def revealed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The types of the calls, in order."""
    file = tmp_path_factory.mktemp("types") / "calls.py"
    names = "acompute_score, acompute_score_batched, compute_score, compute_score_batched"
    lines = "".join(f"    reveal_type({call})\n" for call in CALLS)
    fresh = f"# {uuid.uuid4()}: for a file that mypy has in its cache it does not repeat the types\n"
    file.write_text(f"{fresh}from rewardstack import {names}\n\nasync def main() -> None:\n{lines}")
    root = Path(__file__).resolve().parents[2]
    # In a process of its own, for mypy raises the limit of recursion.
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), str(file)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition('"')[2].rpartition('"')[0] for line in done.stdout.splitlines() if "Revealed type" in line]


def test_calls_are_typed_as_what_they_return(revealed: list[str]) -> None:
    """A sample's reward, a batch's list and their details are told apart by the arguments."""
    plain = [one.replace("builtins.", "") for one in revealed]
    assert dict(zip(CALLS, plain, strict=True)) == CALLS
