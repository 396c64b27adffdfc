"""Fixtures for Apptainer: a run directory, and empty files in place of images."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.apptainer.images import IMAGES
from tests.native.nginx import load


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Create a run directory."""
    made = RunDir(str(tmp_path_factory.mktemp("run")))
    made.make()
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings with a folder that has an empty file for each image."""
    for name in IMAGES:
        (tmp_path / f"{name}.sif").touch()
    return load(SIF_DIR=tmp_path, STACK="apptainer")
