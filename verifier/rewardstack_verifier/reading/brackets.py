"""Normalize notations before parsing: outward brackets, `]0, 1[`, TeX fractions, `{3 \\over 4}`, and others."""

from __future__ import annotations

from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token

_DIVIDING = {"over": "frac", "choose": "binom"}
_OPEN, _CLOSE = Token(MARK, "{"), Token(MARK, "}")
_OPENING = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}


def turned_inwards(tokens: list[Token]) -> list[Token]:
    """Replace outward brackets by parentheses: `]0, 1[` becomes `(0, 1)`.

    `]` opens an interval if no bracket is open; `[` closes one after a comma or semicolon and an item.

    Args:
        tokens: tokens from `lex`.
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


def without_braces(tokens: list[Token]) -> list[Token]:
    """Remove the braces that SymPy prints around the argument of a function: `f{\\left(x \\right)}`."""
    found = list(tokens)
    for at in range(len(tokens) - 2, 0, -1):
        before, opened, bracket = tokens[at - 1 : at + 2]
        if before.kind == LETTERS and (opened.text, bracket.text) == ("{", "("):
            end = _edge(found, at, 1)
            if end < len(found) and found[end - 1].text == ")":
                del found[end], found[at]
    return found


def with_commas(tokens: list[Token]) -> list[Token]:
    """Replace the bar in a point, `(2|-3)` as in German books, by a comma."""
    found = list(tokens)
    for start in (at for at, token in enumerate(tokens) if token.text == "("):
        end = next((at for at in range(start, len(tokens)) if tokens[at].text == ")"), start)
        inside = tokens[start + 1 : end]
        if [token.text for token in inside].count("|") == 1 and all(token.kind in (NUMBER, MARK) for token in inside):
            at = start + 1 + [token.text for token in inside].index("|")
            found[at] = Token(MARK, ",")
    return found


def chosen(tokens: list[Token]) -> list[Token]:
    """Replace `{}_5C_2` and `{}^5C_2` by binomial coefficients, and `{}_5P_2` by one times a factorial."""
    for at, token in enumerate(tokens):
        n, behind = _index(tokens, at) if token.text in ("_", "^") and at in (0, 1) else (None, 0)
        name = tokens[behind].text if n and behind < len(tokens) else ""
        k, end = _index(tokens, behind + 1) if name in ("C", "P") and tokens[behind + 1 : behind + 2] else (None, 0)
        if n and k:
            orders = [Token(MARK, "*"), _OPEN, *k, _CLOSE, Token(MARK, "!")] if name == "P" else []
            coefficient = [Token(COMMAND, "binom"), _OPEN, *n, _CLOSE, _OPEN, *k, _CLOSE]
            return [*tokens[:at], *coefficient, *orders, *chosen(tokens[end:])]
    return tokens


def _index(tokens: list[Token], at: int) -> tuple[list[Token] | None, int]:
    """Return the tokens of the index after `_` or `^`, and where the index ends; None if there is no index."""
    if tokens[at].text not in ("_", "^") or at + 1 >= len(tokens):
        return None, at
    if tokens[at + 1].text != "{":
        return [tokens[at + 1]], at + 2
    end = _edge(tokens, at + 1, 1)
    return tokens[at + 2 : end], end + 1


def divided(tokens: list[Token]) -> list[Token]:
    """Replace `{3 \\over 4}` by a fraction and `{n \\choose k}` by a binomial coefficient."""
    at = next((at for at, token in enumerate(tokens) if token.kind == COMMAND and token.text in _DIVIDING), None)
    if at is None:
        return tokens
    start, end = _edge(tokens, at, -1), _edge(tokens, at, 1)
    command = Token(COMMAND, _DIVIDING[tokens[at].text])
    inside = [command, _OPEN, *tokens[start + 1 : at], _CLOSE, _OPEN, *divided(tokens[at + 1 : end]), _CLOSE]
    return [*tokens[: start + 1], *inside, *divided(tokens[end:])]


def _edge(tokens: list[Token], at: int, step: int) -> int:
    """Return where the group around a token opens (`step` -1) or closes (1); beyond the tokens if it does not."""
    depth = 0
    while 0 <= at + step < len(tokens):
        at += step
        depth += {"{": step, "}": -step}.get(tokens[at].text, 0)
        if depth < 0:
            return at
    return at + step
