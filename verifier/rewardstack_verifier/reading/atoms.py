"""Numbers, letters, brackets and bars: what sums and products are made of."""

from __future__ import annotations

from fractions import Fraction

from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, Number, Symbol
from rewardstack_verifier.reading.environments import Environments
from rewardstack_verifier.reading.functions import Functions
from rewardstack_verifier.reading.lexer import BEGIN, COMMAND, LETTERS, NUMBER, Token, UnreadError
from rewardstack_verifier.reading.names import CONSTANTS, FUNCTIONS, GREEK, SEVERAL, UNIT_LETTERS, UNITS
from rewardstack_verifier.reading.stream import AFTER_ALL
from rewardstack_verifier.reading.syntax import Node, Sequence
from rewardstack_verifier.reading.terms import SIGNS, expression, letter, number, repeating, subscript

MOST_FACTORS = 2
"""Letters side by side that are factors; more are a word, or may be, but for neighbours in the alphabet: `xyz`."""
_ARGUMENTS = frozenset("xtns")
"""Letters that a function is said of."""
CLOSING = {"(": (")", "]"), "[": ("]", ")"), "\\{": ("\\}",), "{": ("}",), "langle": ("rangle",)}
"""What may close each bracket."""


class Atoms(Functions, Environments):
    """Reads what is held together."""

    def _argument(self, whole: bool = False) -> Expression:
        """The argument of a command: a group, or one token, of a number one digit unless it is taken `whole`."""
        token = self._peek()
        if token.kind == NUMBER and not whole and token.text.isdecimal() and len(token.text) > 1:
            self._leave(token, token.text[1:])
            return number(token.text[0])
        if token.kind == LETTERS and len(token.text) > 1 and token.text not in CONSTANTS and not whole:
            self._leave(token, token.text[1:])
            return letter(token.text[0])
        return expression(self._inside(self._atom))

    def _atom(self) -> Node:
        token = self._next()
        if token is AFTER_ALL:
            raise UnreadError("it ends too early")
        if token.kind == NUMBER:
            return self._number(token.text)
        if token.kind == LETTERS:
            return self._letters(token)
        if token.kind == BEGIN:
            return self._environment(token.text)
        if token.text in CLOSING:
            return self._inside(lambda: self._bracketed(token.text))
        if token.text == "|":
            return self._absolute()
        if token.kind == COMMAND:
            return self._command(token.text)
        raise UnreadError(f"{token.text!r} begins nothing")

    def _number(self, digits: str) -> Number:
        if self._peek().text in ("overline", "bar", "dot"):
            return self._repeating(digits)
        dots = self._peek().text == "ldots" or all(self._peek(ahead).text == "." for ahead in range(3))
        periodic = repeating(digits) if dots and "." in digits else None
        if periodic is None:
            return number(digits)
        self._at += 1 if self._peek().text == "ldots" else 3
        return periodic

    def _repeating(self, digits: str) -> Number:
        """A decimal whose last digits, under a line, repeat for ever."""
        self._next()
        group, repeated, closed = self._next(), self._next(), self._next()
        whole, point, fixed = digits.partition(".")
        if not (group.text == "{" and repeated.kind == NUMBER and repeated.text.isdecimal() and closed.text == "}"):
            raise UnreadError("a line over something other than digits")
        if not point:
            raise UnreadError("digits that repeat without a decimal point")
        period = Fraction(int(repeated.text), 10 ** len(repeated.text) - 1)
        return Number(Fraction(f"{whole}.{fixed or 0}") + period / 10 ** len(fixed))

    def _letters(self, token: Token) -> Node:
        name = token.text
        if name in FUNCTIONS and len(name) > 1:
            return self._function(FUNCTIONS[name])
        if name in SEVERAL:
            return self._several(SEVERAL[name])
        if name in ("const", "constant"):
            return Symbol("C")
        if name == "sqrt":
            return self._root()
        if token.word and name in UNIT_LETTERS and self._at > 1 and self._tokens[self._at - 2].text not in SIGNS:
            raise UnreadError("a letter that is a unit")
        if len(name) == 1 or name in CONSTANTS:
            return self._named(name)
        if name in GREEK:
            return Symbol(name)
        if token.word or name in UNITS or (len(name) > MOST_FACTORS and not _are_neighbours(name)):
            raise UnreadError(f"the word {name!r}")
        # Letters side by side are factors; what follows belongs to the last.
        self._at -= 1
        self._leave(token, name[1:])
        return letter(name[0])

    def _named(self, name: str) -> Expression:
        """A letter with its subscript, primes, and the arguments of a function that it names."""
        if self._take("_"):
            if [self._peek(at).text for at in range(5)] == ["{", "1", ",", "2", "}"]:
                self._at += 5  # of both: `x_{1,2} = 2 \pm 1`
                return Symbol(name)
            return Symbol(f"{name}_{subscript(self._argument(whole=True))}")
        behind = self._peek()
        if name in "Cc" and behind.kind == NUMBER and len(behind.text) == 1 and not behind.spaced:
            return Symbol(f"{name}_{self._next().text}")  # a constant of a general solution
        primes = ""
        while self._take("'"):
            primes += "'"
        if name + primes in CONSTANTS:
            return Constant(CONSTANTS[name])
        if name == "C" and (chosen := self._chosen()):
            return chosen
        if (primes or name in "fghFGH" or self._names_function()) and self._peek().text == "(":
            argument = self._inside(self._atom)
            if isinstance(argument, Sequence):
                return Apply(f"call {name}{primes}", tuple(map(expression, argument.items)))
            return Apply(f"call {name}{primes}", (expression(argument),))
        return Symbol(name + primes)

    def _names_function(self) -> bool:
        """Whether a letter that stands for a function follows in parentheses, and an equals sign: `y(x) =`."""
        opened, letter_, closed, sign = (self._peek(at).text for at in range(4))
        return (opened, closed, sign) == ("(", ")", "=") and letter_ in _ARGUMENTS

    def _chosen(self) -> Expression | None:
        """A binomial coefficient as `C(5, 2)`."""
        opened, n, comma, k, closed = (self._peek(at) for at in range(5))
        numbers = n.text.isdecimal() and k.text.isdecimal()
        if (opened.text, comma.text, closed.text) != ("(", ",", ")") or not numbers or int(n.text) < int(k.text):
            return None
        self._at += 5
        return Apply("binomial", (number(n.text), number(k.text)))

    def _absolute(self) -> Node:
        self._bars += 1
        inside = self._sum()
        self._bars -= 1
        self._expect("|")
        return Apply("abs", (expression(inside),))


def _are_neighbours(letters: str) -> bool:
    """Whether small letters are some that follow one another in the alphabet, in any order: `zyx`."""
    codes = sorted(map(ord, letters))
    return letters.islower() and codes == list(range(codes[0], codes[0] + len(codes)))
