"""Commands and functions: fractions, roots, logarithms, sums over an index."""

from __future__ import annotations

from rewardstack_verifier.numbers.tree import (
    Apply,
    Constant,
    Expression,
    Symbol,
    integer,
    negative,
    substituted,
    symbols,
)
from rewardstack_verifier.reading.lexer import LETTERS, UnreadError
from rewardstack_verifier.reading.names import (
    CONSTANTS,
    DECORATIONS,
    FUNCTIONS,
    GREEK,
    INVERSES,
    OVER_INDEX,
    SEVERAL,
    names,
)
from rewardstack_verifier.reading.sums import Sums
from rewardstack_verifier.reading.syntax import NamedSet, Node, Sequence, Words
from rewardstack_verifier.reading.terms import expression, is_integer, product, subscript

MOST_TERMS = 100
"""Of a sum or product over an index that is written out."""
_FIGURES = names("angle triangle")
"""Commands before the letters of a figure's name."""


class Functions(Sums):
    """Reads commands and what they are applied to."""

    def _command(self, name: str) -> Node:
        if name == "frac":
            return Apply("quotient", (self._argument(), self._argument()))
        if name == "sqrt":
            return self._root()
        if name == "binom":
            return Apply("binomial", (self._argument(), self._argument()))
        if name in FUNCTIONS:
            return self._function(FUNCTIONS[name])
        if name in SEVERAL:
            return self._several(SEVERAL[name])
        if name == "Gamma" and self._peek().text == "(":
            return self._function("gamma")
        if name in ("lfloor", "lceil"):
            return self._rounded(name)
        if name in OVER_INDEX:
            return self._over_index(OVER_INDEX[name])
        return self._symbol(name)

    def _symbol(self, name: str) -> Node:
        """What a command stands for that is applied to nothing: a constant, a letter, a point, a set."""
        if name in CONSTANTS:
            return Constant(CONSTANTS[name])
        if name in GREEK:
            return self._named(name)
        if name in DECORATIONS:
            decorated = subscript(self._argument())
            is_vector = name == "vec" and len(decorated) == 1
            return Symbol(self._marked(decorated if is_vector else f"{name} {decorated}"))
        if name in _FIGURES and self._peek().kind == LETTERS:
            return Symbol(f"{name} {self._next().text}")
        if name == "mathbb":
            return self._named_set(subscript(self._argument()))
        if name == "emptyset":
            return NamedSet("empty")
        if name == "ldots":
            return Words("...")
        raise UnreadError(f"the command {name}")

    def _named_set(self, name: str) -> NamedSet:
        """A set by its letter, with what stands above it: `R^+`."""
        ahead = [self._peek(at).text for at in range(4)]
        for length, sign in ((2, ahead[1]), (4, ahead[2])):
            if ahead[0] == "^" and sign in ("+", "-", "*") and (length == 2 or (ahead[1], ahead[3]) == ("{", "}")):
                self._at += length
                return NamedSet(name + sign)
        return NamedSet(name)

    def _root(self) -> Expression:
        index: Expression = integer(2)
        if self._take("["):
            index = expression(self._inside(self._sum))
            self._expect("]")
        return Apply("root", (self._argument(whole=True), index))

    def _over_index(self, operation: str) -> Expression:
        """A sum or product from a first to a last value of an index, of the product that stands behind."""
        self._expect("_")
        self._expect("{")
        indices, self._indices = self._indices, self._indices | {self._peek().text}
        try:
            return self._over(operation)
        finally:
            self._indices = indices

    def _over(self, operation: str) -> Expression:
        """A sum or product from its index on."""
        index = self._inside(self._sum)
        self._expect("=")
        first = expression(self._inside(self._sum))
        self._expect("}")
        self._expect("^")
        last = self._argument(whole=True)
        if not isinstance(index, Symbol) or index.name in symbols(first, last):
            raise UnreadError("an index that is no letter")
        body = expression(self._inside(self._product))
        if is_integer(first) and is_integer(last) and 0 <= last.value - first.value < MOST_TERMS:
            terms = (substituted(body, index.name, integer(at)) for at in range(int(first.value), int(last.value) + 1))
            return Apply(operation.removesuffix(" over"), tuple(terms))
        return Apply(operation, (body, index, first, last))

    def _rounded(self, name: str) -> Expression:
        inside = expression(self._inside(self._sum))
        self._expect("rfloor" if name == "lfloor" else "rceil")
        return Apply("floor" if name == "lfloor" else "ceiling", (inside,))

    def _several(self, operation: str) -> Expression:
        arguments = self._inside(self._atom)
        if not isinstance(arguments, Sequence):
            raise UnreadError(f"{operation} of one argument")
        return Apply(operation, tuple(map(expression, arguments.items)))

    def _function(self, operation: str) -> Expression:
        base = exponent = None
        while mark := self._take("_", "^"):
            if mark == "_":
                base = self._argument()
            else:
                exponent = negative(self._argument()) if self._take("-") else self._argument()
        if exponent == integer(-1) and operation in INVERSES:
            operation, exponent = INVERSES[operation], None
        argument = self._function_argument()
        if base is not None and operation not in ("log10", "ln"):
            raise UnreadError(f"{operation} with a subscript")
        value = Apply(operation, (argument,)) if base is None else Apply("log", (argument, base))
        return value if exponent is None else Apply("power", (value, exponent))

    def _at_degrees(self) -> bool:
        """Whether degrees are next, `^\\circ`: they are the argument's, and another power is the function's."""
        return "degree" in (self._peek(1).text, self._peek(1).text == "{" and self._peek(2).text)

    def _power(self) -> Node:
        """An atom with what stands behind it."""
        return self._postfix(self._atom())

    def _function_argument(self) -> Expression:
        """In brackets, or as far as the product goes that stands behind: `sin 2x`, `ln x/2` being of `x` alone."""
        if (opening := self._peek().text) in ("(", "[", "{", "|"):
            argument = self._inside(self._atom)
            raised = self._peek().text == "^" and (opening in ("{", "|") or self._at_degrees())
            return expression(self._raised(expression(argument)) if raised and self._take("^") else argument)
        if self._take("-"):
            return negative(self._nested(self._function_argument))
        factors = [expression(self._nested(self._power))]
        while self._begins_factor() and self._peek().text not in ("(", "[") and self._peek().text not in FUNCTIONS:
            factors.append(expression(self._nested(self._power)))
        return product(factors)
