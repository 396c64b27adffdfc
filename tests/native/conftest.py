"""Fixtures of the native stack's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.tree import Tree


@pytest.fixture
def tree(needs_stack: None, tmp_path: Path) -> Iterator[Tree]:
    """A copy of the tree; whatever was started in it is stopped at the end."""
    copy = Tree(tmp_path / "tree")
    yield copy
    copy.run("down")
