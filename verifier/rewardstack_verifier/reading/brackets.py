"""Normalize notations before parsing, such as outward brackets (`]0, 1[`) and TeX fractions (`{3 \\over 4}`)."""

from __future__ import annotations

from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token

_DIVIDING = {"over": "frac", "choose": "binom"}
_OPEN, _CLOSE = Token(MARK, "{"), Token(MARK, "}")
_OPENING = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}


def normalize_notations(tokens: list[Token]) -> list[Token]:
    """Replace the notations of this module by the usual ones.

    Args:
        tokens: tokens from `tokenize`.
    """
    tokens = _replace_binomials(_replace_point_bars(_drop_function_braces(tokens)))
    return _turn_brackets_inwards(_replace_tex_fractions(tokens))


def _turn_brackets_inwards(tokens: list[Token]) -> list[Token]:
    """Replace outward brackets by parentheses: `]0, 1[` becomes `(0, 1)`.

    A `]` opens an interval if no bracket is open. A `[` closes the open bracket if a comma or semicolon and an item are
    before it: `(0, 1[`.
    """
    result: list[Token] = []
    closing_brackets: list[str] = []
    has_separator: list[bool] = []
    for token in tokens:
        before = result[-1].text if result else ""
        if token.text == "]" and not closing_brackets:
            token = token._replace(text="(")
        elif token.text == "[" and any(has_separator[-1:]) and before not in (",", ";", "sqrt"):
            token = token._replace(text=")")
        if token.text in _OPENING:
            closing_brackets.append(_OPENING[token.text])
            has_separator.append(False)
        elif token.text in (")", "]", "}", "\\}") and closing_brackets:
            closing_brackets.pop()
            has_separator.pop()
        elif token.text in (",", ";") and has_separator:
            has_separator[-1] = True
        result.append(token)
    return result


def _drop_function_braces(tokens: list[Token]) -> list[Token]:
    """Remove the braces that SymPy prints around the argument of a function: `f{\\left(x \\right)}`."""
    result = list(tokens)
    for at in range(len(tokens) - 2, 0, -1):
        before, opened, bracket = tokens[at - 1 : at + 2]
        if before.kind == LETTERS and (opened.text, bracket.text) == ("{", "("):
            end = _group_edge(result, at, 1)
            if end < len(result) and result[end - 1].text == ")":
                del result[end], result[at]
    return result


def _replace_point_bars(tokens: list[Token]) -> list[Token]:
    """Replace the bar in a point, `(2|-3)` as in German books, by a comma."""
    result = list(tokens)
    for start in (at for at, token in enumerate(tokens) if token.text == "("):
        end = next((at for at in range(start, len(tokens)) if tokens[at].text == ")"), start)
        inside = tokens[start + 1 : end]
        if [token.text for token in inside].count("|") == 1 and all(token.kind in (NUMBER, MARK) for token in inside):
            at = start + 1 + [token.text for token in inside].index("|")
            result[at] = Token(MARK, ",")
    return result


def _replace_binomials(tokens: list[Token]) -> list[Token]:
    """Replace `{}_5C_2` and `{}^5C_2` by a binomial coefficient, and `{}_5P_2` by the same coefficient times `2!`."""
    for at, token in enumerate(tokens):
        n, index_end = _read_index(tokens, at) if token.text in ("_", "^") and at in (0, 1) else (None, 0)
        name = tokens[index_end].text if n and index_end < len(tokens) else ""
        k, end = _read_index(tokens, index_end + 1) if name in ("C", "P") else (None, 0)
        if n and k:
            orders = [Token(MARK, "*"), _OPEN, *k, _CLOSE, Token(MARK, "!")] if name == "P" else []
            coefficient = [Token(COMMAND, "binom"), _OPEN, *n, _CLOSE, _OPEN, *k, _CLOSE]
            return [*tokens[:at], *coefficient, *orders, *_replace_binomials(tokens[end:])]
    return tokens


def _read_index(tokens: list[Token], at: int) -> tuple[list[Token] | None, int]:
    """Return the tokens of the index after `_` or `^`, and its end; None if there is no index."""
    if at + 1 >= len(tokens) or tokens[at].text not in ("_", "^"):
        return None, at
    if tokens[at + 1].text != "{":
        return [tokens[at + 1]], at + 2
    end = _group_edge(tokens, at + 1, 1)
    return tokens[at + 2 : end], end + 1


def _replace_tex_fractions(tokens: list[Token]) -> list[Token]:
    """Replace `{3 \\over 4}` by a fraction and `{n \\choose k}` by a binomial coefficient."""
    at = next((at for at, token in enumerate(tokens) if token.kind == COMMAND and token.text in _DIVIDING), None)
    if at is None:
        return tokens
    start, end = _group_edge(tokens, at, -1), _group_edge(tokens, at, 1)
    command = Token(COMMAND, _DIVIDING[tokens[at].text])
    below = _replace_tex_fractions(tokens[at + 1 : end])
    fraction = [command, _OPEN, *tokens[start + 1 : at], _CLOSE, _OPEN, *below, _CLOSE]
    return [*tokens[: start + 1], *fraction, *_replace_tex_fractions(tokens[end:])]


def _group_edge(tokens: list[Token], at: int, step: int) -> int:
    """Return the position where the group around a token opens (`step` -1) or closes (`step` 1).

    For a token outside of groups, return the position before the first token (-1) or after the last one.
    """
    depth = 0
    while 0 <= at + step < len(tokens):
        at += step
        depth += {"{": step, "}": -step}.get(tokens[at].text, 0)
        if depth < 0:
            return at
    return at + step
