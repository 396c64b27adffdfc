"""Numbers, letters, brackets and bars: what sums and products are made of."""

from __future__ import annotations

from fractions import Fraction

from rewardstack_verifier.numbers.tree import Apply, Constant, Expression, Number, Symbol
from rewardstack_verifier.reading.environments import Environments
from rewardstack_verifier.reading.functions import Functions
from rewardstack_verifier.reading.grammar import AFTER_ALL
from rewardstack_verifier.reading.lexer import BEGIN, COMMAND, LETTERS, NUMBER, Token, UnreadError
from rewardstack_verifier.reading.names import CONSTANTS, FUNCTIONS, GREEK, SEVERAL, UNIT_LETTERS, UNITS, names
from rewardstack_verifier.reading.syntax import Node, Sequence
from rewardstack_verifier.reading.terms import SIGNS, expression, letter, number, repeating, subscript
from rewardstack_verifier.reading.units import named as unit_named

MOST_FACTORS = 2
"""Letters side by side that are factors; more are a word, or may be."""
_VOWELS = frozenset("aeiouy")
_ARGUMENTS = frozenset("xtns")
"""Letters that a function is said of."""
_REPEATING = names("repeating recurring")
"""Words for the dots behind a decimal whose last digits repeat."""
_ABOVE = names("* star dagger max min")
"""What stands raised behind a letter and is part of its name, beside words."""
MOST_BELOW = 24
"""Tokens of a subscript."""
MOST_ARGUMENTS = 6
"""Of a function that is named by a letter."""
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
        if self._peek().text in ("bar", "dot"):
            return self._repeating(digits)
        in_words = self._peek().text in _REPEATING
        dots = self._peek().text == "ldots" or all(self._peek(ahead).text == "." for ahead in range(3))
        if in_words and digits[-2:-1] == ".":
            digits += digits[-1] * 2
        periodic = repeating(digits) if (dots or in_words) and "." in digits else None
        if periodic is None:
            return number(digits)
        self._at += 1 if in_words or self._peek().text == "ldots" else 3
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
        if token.word or name in UNITS or (len(name) > MOST_FACTORS and not self._are_factors(token)):
            raise UnreadError(f"the word {name!r}")
        # Letters side by side are factors; what follows belongs to the last.
        self._at -= 1
        self._leave(token, name[1:])
        return Symbol(name[0]) if name[0] in self._indices else letter(name[0])

    def _are_factors(self, token: Token) -> bool:
        """Whether three letters or more are no word: neighbours in the alphabet, or without a vowel: `zyx`, `mgh`."""
        name = token.text
        if _are_neighbours(name):
            return True
        if len(name) != MOST_FACTORS + 1 or not _VOWELS.isdisjoint(name.lower()) or name.isupper() or unit_named(name):
            return False
        before = self._tokens[self._at - 2] if self._at > 1 else None
        return before is None or before.kind != NUMBER or not token.spaced  # `12 pcs`

    def _named(self, name: str) -> Expression:
        """A letter with its subscript, primes, and the arguments of a function that it names."""
        if [self._peek(at).text for at in range(6)] == ["_", "{", "1", ",", "2", "}"]:
            self._at += 6  # of both: `x_{1,2} = 2 \pm 1`
            return Symbol(name)
        behind = self._peek()
        if name in "Cc" and behind.kind == NUMBER and len(behind.text) == 1 and not behind.spaced:
            return Symbol(f"{name}_{self._next().text}")  # a constant of a general solution
        marked = self._marked(name)
        primes = marked.count("'") if marked.rstrip("'") == name else 0
        if marked in CONSTANTS and marked not in self._indices:
            return Constant(CONSTANTS[name])
        if marked == "C" and (chosen := self._chosen()):
            return chosen
        if (primes or marked in "fghFGH" or self._names_function()) and self._peek().text == "(":
            argument = self._inside(self._atom)
            arguments = argument.items if isinstance(argument, Sequence) else (argument,)
            return Apply(f"call {marked}", tuple(map(expression, arguments)))
        return Symbol(marked)

    def _marked(self, name: str) -> str:
        """A name with what is part of it, in one form: `x_{\\max}`, `\\omega'_L`, `v^*`."""
        below = above = primes = ""
        while True:
            if not below and self._take("_"):
                below = f"_{self._below()}"
            elif self._take("'"):
                primes += "'"
            elif not above and (found := self._above()):
                above = f"^{found}"
            else:
                return name + below + above + primes

    def _below(self) -> str:
        """A subscript, by its letters, digits and signs alone, so that its font does not count."""
        token = self._peek()
        if token.text == "{":
            return self._group_below()
        if token.kind == LETTERS and (token.word or len(token.text) > MOST_FACTORS):
            found = self._next().text
            while self._peek().word and not self._peek().spaced:
                found += self._next().text
            return found
        if token.kind == COMMAND and token.text not in ("frac", "sqrt"):
            return self._next().text
        return subscript(self._argument(whole=True))

    def _group_below(self) -> str:
        found: list[str] = []
        depth = 0
        while len(found) <= MOST_BELOW and self._peek() is not AFTER_ALL:
            token = self._next()
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            found.append(token.text)
            if not depth:
                return "".join(text for text in found if text not in ("{", "}"))
        raise UnreadError("a subscript that is too long, or does not end")

    def _above(self) -> str:
        """What is raised and part of a name: a star, a word. Nothing, and nothing taken, where it is an exponent."""
        grouped = self._peek(1).text == "{"
        token = self._peek(1 + grouped)
        word = token.kind == LETTERS and token.word and len(token.text) > 1
        closed = not grouped or self._peek(3).text == "}"
        if self._peek().text != "^" or not closed or not (word or token.text in _ABOVE):
            return ""
        self._at += 4 if grouped else 2
        return token.text

    def _names_function(self) -> bool:
        """Whether a letter that stands for a function follows in parentheses, and an equals sign: `y(x) =`.

        So do several letters, and one that the function is said with: `\\Phi(x, y) =`, `v(h) = \\sqrt{2gh}`.
        """
        if self._peek().text != "(":
            return False
        letters = [self._peek(at) for at in range(1, 2 * MOST_ARGUMENTS, 2)]
        joined = [self._peek(at).text for at in range(2, 2 * MOST_ARGUMENTS + 1, 2)]
        count = next((at for at, text in enumerate(joined) if text != ","), MOST_ARGUMENTS) + 1
        arguments = [token.text for token in letters[:count] if _is_letter(token)]
        end = 2 * count
        if len(arguments) != count or self._peek(end).text != ")" or self._peek(end + 1).text != "=":
            return False
        behind = self._tokens[self._at + end + 2 :]
        return count > 1 or arguments[0] in _ARGUMENTS or any(arguments[0] in token.text for token in behind)

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
        inside = self._nested(self._sum)
        self._bars -= 1
        self._expect("|")
        return Apply("abs", (expression(inside),))


def _is_letter(token: Token) -> bool:
    """Whether it is one letter, of any alphabet that formulas have."""
    return token.text in GREEK or (token.kind == LETTERS and len(token.text) == 1)


def _are_neighbours(letters: str) -> bool:
    """Whether small letters are some that follow one another in the alphabet, in any order: `zyx`."""
    codes = sorted(map(ord, letters))
    return letters.islower() and codes == list(range(codes[0], codes[0] + len(codes)))
