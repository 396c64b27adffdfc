"""Copy the source tree, so that a test can change its settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from services.stack.rundir import ROOT
from services.stack.settings import SETTINGS

NOT_COPIED = shutil.ignore_patterns(".*", "tests", "benchmarks", "dist", "site")


class Copy:
    """A copy of the source tree, without tests and benchmarks.

    Args:
        path: folder to create.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(ROOT, path, ignore=NOT_COPIED)
        shutil.copy(ROOT / ".env", path)

    def text(self, name: str) -> str:
        """Return the content of a file."""
        return (self.path / name).read_text(encoding="utf-8")

    def python(self, *arguments: str, **environ: str) -> tuple[int, str]:
        """Run Python with the copy's packages; return its exit status and output, including standard error."""
        kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        folders = (".", "client", "cli", "verifier", "services/rules")
        places = (self.path / folder for folder in folders)
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.path,
            env={**kept, "PYTHONPATH": os.pathsep.join(map(str, places)), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout


@pytest.fixture
def copy(tmp_path: Path, needs_process: None) -> Copy:
    """Create a copy of the source tree."""
    return Copy(tmp_path / "tree")
