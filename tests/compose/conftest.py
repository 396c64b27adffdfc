"""Fixture of the Compose tests: API keys in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compose.keys import write_keys


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """Return a run directory whose secret files all have a key."""
    write_keys(tmp_path)
    return tmp_path
