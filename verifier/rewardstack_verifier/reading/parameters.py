"""Parse families of values with a parameter: `k\\pi, k \\in \\mathbb{Z}`, "2n + 1 for any integer n"."""

from __future__ import annotations

from rewardstack_verifier.numbers.tree import Apply, symbols
from rewardstack_verifier.reading.lexer import Token, UnreadableError
from rewardstack_verifier.reading.names import word_set
from rewardstack_verifier.reading.parser import parse_formula
from rewardstack_verifier.reading.syntax import Family, Node, Relation

_BEFORE = word_set(
    ", ( ; forall where for with and any all some every each is an a number numbers der die für entier entière"
)
"""Signs and words that can be before a parameter, or before the name of its set."""
_BEHIND = word_set(") .")
_CONSTANT = word_set("constant constants")
"""Words for a parameter that is not an argument."""
_SETS = {
    **dict.fromkeys(("Z", "integer", "integers", "entier", "entiers", "entero", "enteros", "ganz", "целое"), "Z"),
    **dict.fromkeys(("N", "natural", "naturals"), "N"),
    **dict.fromkeys(("R", "real", "reals", "reell", "reelle", "réel", "real"), "R"),
}
MAX_TOKENS = 12
"""Maximum tokens of the declaration of a parameter, such as "for any integer n"."""


def parse_family(tokens: list[Token]) -> Family | Relation:
    """Parse an answer that ends with a parameter and its set.

    If the parameter is the argument of a function, `f(x) = 2x for x in R`, or a real constant of a function,
    `f(x) = cx for any real constant c`, return only the equation.

    Raises:
        UnreadableError: the answer does not end with a parameter and its set, or the rest cannot be parsed. The set may
            be omitted if the parameter is the argument of a function.
    """
    for at in range(max(1, len(tokens) - MAX_TOKENS), len(tokens)):
        declaration = [token.text for token in tokens[at:] if token.text not in ("mathbb", "{", "}", "mathbf")]
        while declaration and declaration[-1] in _BEHIND:
            declaration.pop()
        if tokens[at].text in _BEFORE and (declared := _read_declaration(declaration)):
            node, (parameter, domain) = parse_formula(tokens[:at]), declared
            if isinstance(node, Relation) and _needs_no_set(node.sides[0], parameter, domain, tokens[at:]):
                return node
            if domain:
                return Family(node, parameter, domain)
    raise UnreadableError("no parameter")


def _read_declaration(declaration: list[str]) -> tuple[str, str] | None:
    """Return the parameter and its set (empty if not given) of `, k in Z` or `for any k`; None for other words."""
    words = [word for word in declaration if word not in _BEFORE | _CONSTANT]
    if len(words) == 1 and len(words[0]) == 1 and words[0].isalpha():
        return words[0], ""
    if len(words) == 3 and words[1] == "in" and words[2] in _SETS:
        return words[0], _SETS[words[2]]
    if len(words) == 2 and (words[0] in _SETS) != (words[1] in _SETS):
        letter, domain = sorted(words, key=len)
        return (letter, _SETS[domain]) if len(letter) == 1 and domain in _SETS else None
    return None


def _needs_no_set(side: Node, parameter: str, domain: str, declaration: list[Token]) -> bool:
    """Return whether a side is a function such as `f(x)`, and the parameter is its argument or a constant.

    A parameter is a constant if it is called so, or can be any real number: `f(x) = cx, c \\in \\mathbb{R}`.
    """
    if not isinstance(side, Apply) or not side.operation.startswith("call "):
        return False
    is_constant = domain == "R" or (not domain and any(token.text in _CONSTANT for token in declaration))
    return parameter in symbols(side) or is_constant
