"""Intervals whose open ends have brackets turned outwards: `]0, 1[`."""

from __future__ import annotations

from rewardstack_rules.mathematics.reading.lexer import Token

_OPENING = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}


def turned_inwards(tokens: list[Token]) -> list[Token]:
    """The tokens with parentheses in the place of brackets that are turned outwards.

    Args:
        tokens: from `lex`; a bracket opens outwards where none is open, and closes so behind the second item of a pair.
    """
    found: list[Token] = []
    expected: list[str] = []
    separated: list[bool] = []
    for token in tokens:
        before = found[-1].text if found else ""
        if token.text == "]" and not expected:
            token = token._replace(text="(")
        elif token.text == "[" and any(separated[-1:]) and before not in (",", ";", "sqrt"):
            token = token._replace(text=")")
        if token.text in _OPENING:
            expected.append(_OPENING[token.text])
            separated.append(False)
        elif token.text in (")", "]", "}", "\\}") and expected:
            expected.pop()
            separated.pop()
        elif token.text in (",", ";") and separated:
            separated[-1] = True
        found.append(token)
    return found
