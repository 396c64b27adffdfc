"""What a module imports, read from its source and without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def imported(module: Path) -> Iterator[str]:
    """The dotted names of all that a module imports, wherever the import stands."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
