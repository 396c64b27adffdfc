"""How code lines are counted."""

from __future__ import annotations

from tests.support.lines import count

SOURCE = '''"""Says what
it is."""

LIMIT = 3
"""The limit."""
# a comment


def double(x: int) -> str:
    """Doubles."""
    return """two
lines""" * x  # a comment behind code
'''


def test_code_lines() -> None:
    """Docstrings, those of attributes too, comments and blank lines are not code; other texts are."""
    assert count(SOURCE) == 4
