"""Keys as `make up` hands them to Compose."""

from __future__ import annotations

from pathlib import Path

from services.stack import settings
from services.stack.rundir import ROOT, RunDir
from services.up.compose import composition
from tests.support.secret_settings import all_secrets

PASSWORD = "hunter2-of-the-tests"
"""Every key and password."""


def write_keys(run_dir: Path) -> None:
    """Write the file of each key into a run directory."""
    values = {**all_secrets(PASSWORD), "REWARD_SERVER_API_KEYS": PASSWORD}
    composition.write_secrets(settings.load(ROOT, values), RunDir(str(run_dir)))
