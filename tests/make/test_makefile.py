"""The Makefile prints what it would do without doing it, and refuses what it does not know."""

from __future__ import annotations

import subprocess

import pytest

from services.stack.rundir import ROOT
from tests.nightly.__main__ import run

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


def test_nightly_targets_run_whole(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The `t` of `make nightly t=machines` names targets; it is not the `t` of `make machines`, which names parts."""
    monkeypatch.setenv("MAKEFLAGS", " -- t=machines")
    monkeypatch.setenv("t", "machines")
    assert run([["-n", "machines"]]) == 0
    assert ".venv/bin/python -m tests.machines" in (
        lines := [line.rstrip() for line in capfd.readouterr().out.splitlines()]
    ), lines
