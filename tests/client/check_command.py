"""The command `rewardstack check`, run in the test's process with the test's environment."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.in_process import Result, run_in_process


def run_check() -> Result:
    """Run the command; its output is as wide as COLUMNS says, else 120 columns."""
    return run_in_process(["check"], Path.cwd(), {"COLUMNS": "120", **os.environ})


def check() -> tuple[int, str]:
    """Run the command and return its exit status and its output, all white space of which is single spaces."""
    done = run_check()
    return done.status, " ".join((done.out + done.err).split())
