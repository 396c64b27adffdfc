"""Parse functions defined by cases: values with the conditions under which they apply."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from rewardstack_verifier.lexicon.phrases import CONDITIONS, OTHERWISE
from rewardstack_verifier.numbers.tree import (
    ONE,
    Apply,
    Expression,
    Number,
    difference,
)
from rewardstack_verifier.reading.lexer import LETTERS, Token, UnreadableError
from rewardstack_verifier.reading.syntax import (
    Node,
    Relation,
    Sequence,
    is_expression,
)
from rewardstack_verifier.reading.terms import (
    require_expression,
)

_CONDITIONS, _OTHERWISE = frozenset(CONDITIONS.split()), frozenset(OTHERWISE.split())
_SIGNS = frozenset((",", ".", ";", ":"))
GAP = Number(Fraction(-(2**61) + 1, 3**37))
"""The value where no condition applies. No answer has it, so two functions have the same gaps if they are equal."""
MAX_CASES = 12
"""Maximum number of cases."""


def parse_piecewise(rows: list[Token], read: Callable[[list[Token]], Node]) -> Apply:
    """Parse rows of values and conditions into one expression.

    Args:
        rows: tokens between the beginning and the end of the environment.
        read: parses a formula.

    Raises:
        UnreadableError: there are too many rows, or a row does not have two columns or cannot be parsed.
    """
    arguments: list[Expression] = []
    for row in _split(rows, "\\\\"):
        value, *conditions = _split(row, "&")
        if len(conditions) != 1 or len(arguments) >= 2 * MAX_CASES:
            raise UnreadableError("a case without its condition")
        arguments += require_expression(read(_trim(value))), _condition(_trim(conditions[0]), read)
    return Apply("piecewise", (*arguments, GAP, ONE))


def _split(tokens: list[Token], sign: str) -> list[list[Token]]:
    """Split tokens at a sign and drop empty parts."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _trim(tokens: list[Token]) -> list[Token]:
    """Return tokens without punctuation and words such as "if" around them."""
    while tokens and (tokens[0].text in _SIGNS or (tokens[0].kind == LETTERS and tokens[0].text in _CONDITIONS)):
        tokens = tokens[1:]
    while tokens and tokens[-1].text in _SIGNS:
        tokens = tokens[:-1]
    return tokens


def _condition(tokens: list[Token], read: Callable[[list[Token]], Node]) -> Expression:
    """Return an expression that is 1 if the condition holds, else 0."""
    if tokens and all(token.text in _OTHERWISE for token in tokens):
        return ONE
    return _condition_value(read(tokens))


def _condition_value(node: Node) -> Expression:
    if isinstance(node, Sequence) and not node.opening and node.joined:
        is_any = set(node.joined) == {"or"}
        return Apply("any" if is_any else "all", tuple(map(_condition_value, node.items)))
    if not isinstance(node, Relation) or node.modulus is not None or not all(map(is_expression, node.sides)):
        raise UnreadableError("not a condition")
    sides = [require_expression(side) for side in node.sides]
    links = [_relation_value(sign, *sides[at : at + 2]) for at, sign in enumerate(node.operators)]
    return links[0] if len(links) == 1 else Apply("all", tuple(links))


def _relation_value(sign: str, one: Expression, other: Expression) -> Apply:
    """Return an expression that is 1 if the relation between two expressions holds, else 0."""
    if sign in (">", ">="):
        one, other, sign = other, one, {">": "<", ">=": "<="}[sign]
    kind = {"<": "positive", "<=": "nonnegative", "=": "zero", "!=": "nonzero"}.get(sign)
    if kind is None:
        raise UnreadableError(f"a condition with {sign!r}")
    return Apply(kind, (difference(other, one),))
