"""`example_coding`: Align-Anything's demonstration for code. It searches for Python keywords and runs nothing."""

from __future__ import annotations

WORDS = ("def ", "class ", "import ", "return ", "if ", "for ", "while ")
INDENTS = ("    ", "\t")


def example_coding(response: str) -> float:
    """Return 0.9 for a keyword and an indent of four spaces or a tab, 0.6 for a keyword without an indent, else 0.3.

    Args:
        response: the policy's text.
    """
    if not any(word in response for word in WORDS):
        return 0.3
    return 0.9 if any(indent in response for indent in INDENTS) else 0.6
