"""Keys as `make up` hands them to Compose."""

from __future__ import annotations

from pathlib import Path

from services.compose import secrets
from services.native import settings
from services.native.rundir import ROOT, RunDir

PASSWORD = "hunter2"
"""Every key and password."""


def write_keys(run_dir: Path) -> None:
    """Write the file of each key into a run directory."""
    secrets.write(settings.load(ROOT, dict.fromkeys(settings.SECRETS, PASSWORD)), RunDir(str(run_dir)))
