"""Keys as `make up` hands them to Compose."""

from __future__ import annotations

from pathlib import Path

from services.stack import settings
from services.stack.rundir import ROOT, RunDir
from services.up.compose import secrets

PASSWORD = "hunter2"
"""Every key and password."""


def write_keys(run_dir: Path) -> None:
    """Write the file of each key into a run directory."""
    secrets.write(settings.load(ROOT, dict.fromkeys(settings.SECRETS, PASSWORD)), RunDir(str(run_dir)))
