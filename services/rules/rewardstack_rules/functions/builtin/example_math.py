"""`example_math`: Align-Anything's demonstration for mathematics. It checks characters, not the answer."""

from __future__ import annotations

SYMBOLS = "+-*/=<>"


def example_math(response: str) -> float:
    """Return 0.8 if the response has a digit and one of + - * / = < >, else 0.2.

    Args:
        response: the policy's text.
    """
    has_digit = any(character.isdigit() for character in response)
    has_symbol = any(symbol in response for symbol in SYMBOLS)
    return 0.8 if has_digit and has_symbol else 0.2
