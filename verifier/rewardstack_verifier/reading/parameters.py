"""Said of each member of a set: `k\\pi, k \\in \\mathbb{Z}`, "2n + 1 for any integer n", "f(x) = x for all x"."""

from __future__ import annotations

from rewardstack_verifier.numbers.tree import Apply, symbols
from rewardstack_verifier.reading.lexer import Token, UnreadError
from rewardstack_verifier.reading.names import names
from rewardstack_verifier.reading.parser import formula
from rewardstack_verifier.reading.syntax import Family, Node, Relation

_BEFORE = names(
    ", ( ; forall where for with and any all some every each is an a number numbers der die für entier entière"
)
"""Signs and words between what is said and its parameter, or between that and its set."""
_BEHIND = names(") .")
_SETS = {
    **dict.fromkeys(("Z", "integer", "integers", "entier", "entiers", "entero", "enteros", "ganz", "целое"), "Z"),
    **dict.fromkeys(("N", "natural", "naturals"), "N"),
    **dict.fromkeys(("R", "real", "reals", "reell", "reelle", "réel", "real"), "R"),
}
MOST_TOKENS = 12
"""Of what is said of the parameter."""


def family(tokens: list[Token]) -> Family | Relation:
    """What holds for each member of a set, said behind it; an equation for a function, which holds for all, alone.

    Raises:
        UnreadError: no set of a parameter is said at its end, or what it holds for is not read.
    """
    for at in range(max(1, len(tokens) - MOST_TOKENS), len(tokens)):
        said = [token.text for token in tokens[at:] if token.text not in ("mathbb", "{", "}", "mathbf")]
        while said and said[-1] in _BEHIND:
            said.pop()
        if tokens[at].text in _BEFORE and (declared := _declared(said)):
            of, (parameter, domain) = formula(tokens[:at]), declared
            if isinstance(of, Relation) and _is_argument(parameter, of.sides[0]):
                return of
            if domain:
                return Family(of, parameter, domain)
    raise UnreadError("no parameter")


def _declared(said: list[str]) -> tuple[str, str] | None:
    """The parameter and its set, if one is said, in `, k in Z`, `where k is an integer`, `for any k`."""
    told = [word for word in said if word not in _BEFORE]
    if len(told) == 1 and len(told[0]) == 1 and told[0].isalpha():
        return told[0], ""
    if len(told) == 3 and told[1] == "in" and told[2] in _SETS:
        return told[0], _SETS[told[2]]
    if len(told) == 2 and (told[0] in _SETS) != (told[1] in _SETS):
        letter, domain = sorted(told, key=len)
        return (letter, _SETS[domain]) if len(letter) == 1 and domain in _SETS else None
    return None


def _is_argument(letter: str, side: Node) -> bool:
    """Whether a side of an equation is a function of a letter: `f(x)`."""
    return isinstance(side, Apply) and side.operation.startswith("call ") and letter in symbols(side)
