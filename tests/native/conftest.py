"""Fixture of the tests of stacks without containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.tree import Tree


@pytest.fixture
def tree(needs_stack: None, tmp_path: Path) -> Iterator[Tree]:
    """Create a copy of the source tree; all that was started in it is stopped at the end."""
    copy = Tree(tmp_path / "tree")
    yield copy
    copy.run("down")
