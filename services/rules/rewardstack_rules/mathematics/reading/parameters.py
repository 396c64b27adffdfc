"""Families with a parameter: `k\\pi, k \\in \\mathbb{Z}`, "2n + 1 for any integer n"."""

from __future__ import annotations

from rewardstack_rules.mathematics.reading.lexer import Token, UnreadError
from rewardstack_rules.mathematics.reading.names import names
from rewardstack_rules.mathematics.reading.parser import formula
from rewardstack_rules.mathematics.reading.syntax import Family

_BEFORE = names(", ( ; where for with and any all some every each is an a number numbers der die für entier entière")
"""Signs and words between what is said and its parameter, or between that and its set."""
_BEHIND = names(") .")
_SETS = {
    **dict.fromkeys(("Z", "integer", "integers", "entier", "entiers", "entero", "enteros", "ganz", "целое"), "Z"),
    **dict.fromkeys(("N", "natural", "naturals"), "N"),
}
MOST_TOKENS = 12
"""Of what is said of the parameter."""


def family(tokens: list[Token]) -> Family:
    """What holds for each member of a set, said behind it.

    Raises:
        UnreadError: no set of a parameter is said at its end, or what it holds for is not read.
    """
    for at in range(max(1, len(tokens) - MOST_TOKENS), len(tokens)):
        said = [token.text for token in tokens[at:] if token.text not in ("mathbb", "{", "}", "mathbf")]
        while said and said[-1] in _BEHIND:
            said.pop()
        if tokens[at].text in _BEFORE and (declared := _declared(said)):
            return Family(formula(tokens[:at]), *declared)
    raise UnreadError("no parameter")


def _declared(said: list[str]) -> tuple[str, str] | None:
    """The parameter and its set in `, k in Z`, `where k is an integer`, `for any integer k`."""
    told = [word for word in said if word not in _BEFORE]
    if len(told) == 3 and told[1] == "in" and told[2] in _SETS:
        return told[0], _SETS[told[2]]
    if len(told) == 2 and (told[0] in _SETS) != (told[1] in _SETS):
        letter, domain = sorted(told, key=len)
        return (letter, _SETS[domain]) if len(letter) == 1 and domain in _SETS else None
    return None
