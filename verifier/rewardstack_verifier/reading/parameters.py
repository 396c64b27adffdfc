"""Parse families of values with a parameter: `k\\pi, k \\in \\mathbb{Z}`, "2n + 1 for any integer n"."""

from __future__ import annotations

from dataclasses import replace

from rewardstack_verifier.numbers.points import INTEGER_LETTERS
from rewardstack_verifier.numbers.tree import Apply, Symbol, rename_symbols, symbols
from rewardstack_verifier.reading.lexer import Token, UnreadableError
from rewardstack_verifier.reading.names import word_set
from rewardstack_verifier.reading.parser import parse_formula
from rewardstack_verifier.reading.syntax import Family, Node, Relation, is_expression

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
MAX_SET_WORDS = 3
"""Maximum words of a set before its letter, such as "all integers"."""
MAX_TOKENS = 12
"""Maximum tokens of the declaration of a parameter, such as "for any integer n"."""


def parse_family(tokens: list[Token]) -> Family | Relation:
    """Parse an answer that ends with a parameter and its set.

    If the parameter is the argument of a function, `f(x) = 2x for x in R`, a real constant of a function,
    `f(x) = cx for any real constant c`, or an integer between bounds, `n > 2, n in Z`, return only the relation. The
    constant is then named `C`. The set may also come first: "all integers n > 2".

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
            if isinstance(node, Relation) and _is_constant(node, parameter, domain, tokens[at:]):
                return replace(node, sides=tuple(_rename(side, parameter) for side in node.sides))
            if isinstance(node, Relation) and _needs_no_set(node, parameter, domain):
                return node
            if domain:
                return Family(node, parameter, domain)
    return _parse_declared(tokens)


def _parse_declared(tokens: list[Token]) -> Relation:
    """Parse bounds of an integer behind the name of its set: "all integers n > 2"."""
    words = [token.text for token in tokens[:MAX_SET_WORDS]]
    at = next((at for at, word in enumerate(words, 1) if _SETS.get(word) == "Z"), 0)
    if not at or not {*words[: at - 1]} <= _BEFORE:
        raise UnreadableError("no parameter")
    node = parse_formula(tokens[at:])
    if not isinstance(node, Relation) or not any(_needs_no_set(node, letter, "Z") for letter in INTEGER_LETTERS):
        raise UnreadableError("no bounds of an integer")
    return node


def _rename(side: Node, parameter: str) -> Node:
    return rename_symbols(side, {parameter: "C"}) if is_expression(side) and "C" not in symbols(side) else side


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


def _is_constant(node: Relation, parameter: str, domain: str, declaration: list[Token]) -> bool:
    """Return whether a parameter is a constant of a function: it is called so, or can be any real number."""
    is_called = any(token.text in _CONSTANT for token in declaration)
    is_used = _is_function(node.sides[0]) and parameter in symbols(*filter(is_expression, node.sides[1:]))
    return is_used and (domain == "R" or (not domain and is_called))


def _needs_no_set(node: Relation, parameter: str, domain: str) -> bool:
    """Return whether a parameter is the argument of a function such as `f(x)`, or an integer `n` between bounds."""
    if _is_function(node.sides[0]):
        return is_expression(node.sides[0]) and parameter in symbols(node.sides[0])
    is_bounded = Symbol(parameter) in node.sides and {*node.operators} <= {"<", "<=", ">", ">="}
    return is_bounded and domain == "Z" and parameter in INTEGER_LETTERS


def _is_function(side: Node) -> bool:
    return isinstance(side, Apply) and side.operation.startswith("call ")
