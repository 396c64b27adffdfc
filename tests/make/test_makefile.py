"""The Makefile prints what it would do without doing it, and refuses what it does not know."""

from __future__ import annotations

import subprocess

import pytest

from services.stack.rundir import ROOT

pytestmark = pytest.mark.usefixtures("needs_process")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_dry_run_of_chosen_tests() -> None:
    """`make -n test t=…` prints the command that runs these tests, and does not run it."""
    done = make("-n", "test", "t=tests/absent")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, ".venv/bin/python -m pytest tests/absent")


def test_unknown_nightly_target() -> None:
    """`make nightly t=nonsense` names the targets that there are, before anything is installed."""
    done = make("nightly", "t=nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown target nonsense; choose from differential" in done.stderr
