"""Keys in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compose.keys import write_keys


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A run directory with a key in every file."""
    write_keys(tmp_path)
    return tmp_path
