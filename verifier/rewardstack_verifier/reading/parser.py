"""Parse the tokens of a formula, or of a list of formulas, into a tree by recursive descent: `parse_formula`."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rewardstack_verifier.numbers.tree import (
    Apply,
    Constant,
    Expression,
    Number,
    Symbol,
    determinant,
    integer,
    negative,
    substitute,
    symbols,
)
from rewardstack_verifier.reading import names, numerals
from rewardstack_verifier.reading.lexer import (
    BEGIN,
    COMMAND,
    END,
    LETTERS,
    MARK,
    NUMBER,
    Token,
    UnreadableError,
    argument_end,
)
from rewardstack_verifier.reading.piecewise import parse_piecewise
from rewardstack_verifier.reading.syntax import (
    Combination,
    Matrix,
    NamedSet,
    Node,
    Relation,
    Sequence,
    SetBuilder,
    Words,
    is_expression,
)
from rewardstack_verifier.reading.terms import (
    SIGNS,
    add_term,
    is_integer,
    is_proper,
    make_letter,
    make_mixed,
    make_number,
    make_periodic,
    make_product,
    make_repeating,
    require,
    require_expression,
    strip_sign,
    subscript_text,
)

T = TypeVar("T")
MAX_DEPTH = 40
"""Maximum nesting of brackets, fractions and functions."""
END_OF_TOKENS = Token(END, "")
"""The token after the last one. It has the kind of `\\end{…}`, because both end a formula."""
MAX_DOUBLE_FACTORIAL = 100
"""Maximum integer whose double factorial is computed."""
MAX_SETS = 50
"""Maximum number of unions, intersections and differences in a row."""
_SCRIPT_MARKS = frozenset("^_'")
_LETTERS_THAT_JOIN = frozenset(("e", "y", "o", "et", "ou"))
"""Words between two items that may also be letters of a formula."""
_NO_ITEM = _SCRIPT_MARKS | {*")]}+*/", "\\}"}
"""Tokens at which no item of a list starts."""
_STOPPING = names.word_set(
    ", ; : ) ] } \\} \\\\ & | + - ± ∓ cup cap setminus rangle rfloor rceil land lor . pmod bmod mod"
)
"""Tokens that end a product of adjacent factors."""
MAX_ROWS = 4
"""Maximum rows and columns of a determinant, and of each matrix in a product. Both are expanded into sums."""
_OPERATORS = names.word_set("^ _ ! ' degree % * /") | set(names.RELATIONS)
"""Tokens that do not begin a factor, in addition to those of `_STOPPING`."""
MAX_TERMS = 100
"""A sum or product over an index is expanded if it has at most this many terms."""
_FIGURES = names.word_set("angle triangle")
"""Commands before the name of a figure, such as `\\triangle ABC`."""
MAX_FACTORS = 2
"""Maximum number of adjacent letters that are factors; more letters may be a word."""
MAX_LETTERS = 6
"""Maximum number of adjacent letters without a vowel that are factors."""
_VOWELS = frozenset("aeiouy")
MAX_LABELS = 4
"""Maximum distance in the alphabet between the capital letters of a figure."""
_ARGUMENTS = frozenset("xtns")
"""Letters that are usual arguments of functions."""
_REPEATING = names.word_set("repeating recurring")
"""Words after a decimal whose last digits repeat."""
_ABOVE = names.word_set("* star dagger max min")
"""Superscripts of a letter that are part of its name, in addition to words."""
MAX_SUBSCRIPT = 25
"""Maximum tokens of a subscript."""
MAX_ARGUMENTS = 6
"""Maximum number of arguments of a function that is named by a letter."""
CLOSING = {"(": (")", "]"), "[": ("]", ")"), "\\{": ("\\}",), "{": ("}",), "langle": ("rangle",)}
"""Brackets that can close each opening bracket."""


def parse_formula(tokens: list[Token]) -> Node:
    """Parse an answer that is a formula, or a list of formulas.

    Args:
        tokens: tokens from `tokenize`.

    Raises:
        UnreadableError: something cannot be parsed, such as words or an integral.
    """
    return _Parser(tokens).parse_all()


class _Parser:
    """Recursive-descent parser of tokens.

    The methods are ordered from lists and relations down to sums, products, functions, environments and atoms.

    Args:
        tokens: tokens from `tokenize`.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = list(tokens)
        self._at = 0
        self._depth = 0
        self._bars = 0
        """Number of bars `|` that must still follow: the end of an absolute value, or the bar of a set builder.

        If the number is 0, a bar opens an absolute value.
        """
        self._has_points = False
        """Whether points are added, as in `(1, 2) + t(3, 4)`, so that a point may have a letter as its factor."""
        self._indices: frozenset[str] = frozenset()
        """Indices of the enclosing sums and products; an index named `i` is not the imaginary unit."""

    def parse_all(self) -> Node:
        """Parse all tokens as one node."""
        require(self._tokens, "nothing")
        items, joined = self._items()
        self._take(".")
        if self._at < len(self._tokens):
            raise UnreadableError(f"{self._peek().text!r} where an answer should end")
        return items[0] if len(items) == 1 and not joined else Sequence("", tuple(items), "", tuple(joined))

    def _items(self, *ends: str) -> tuple[list[Node], list[str]]:
        """Parse items up to a closing bracket of `ends`, which is not consumed; return items and joiners."""
        items: list[Node] = [self._relation()]
        joined: list[str] = []
        while True:
            joiner = self._joiner()
            if not joiner or self._peek() is END_OF_TOKENS or self._peek().text in ends:
                return items, joined
            joined.append(joiner)
            items.append(self._relation())

    def _joiner(self) -> str:
        """Consume the commas and words between two items and return the joiner; empty if there is none."""
        joiner = ""
        while True:
            token = self._peek()
            if token.kind in (MARK, COMMAND) and token.text in (",", ";", ":", "\\\\"):
                joiner = joiner or {"\\\\": ","}.get(token.text, token.text)
            elif self._joins(token):
                joiner = names.JOINING[token.text]
            else:
                return joiner
            self._next()

    def _joins(self, token: Token) -> bool:
        """Return whether a token is "and" or a similar word.

        Foreign words that may be a product of letters, such as the Spanish "y" and the French "et", must have a space
        before them and an item after them. A single letter such as "y" must also be upright.
        """
        if token.kind == COMMAND:
            return token.text in ("land", "lor")
        if token.kind != LETTERS or token.text not in names.JOINING:
            return False
        following = self._peek(1)
        if token.text not in _LETTERS_THAT_JOIN:
            return (
                len(token.text) > 1
                or not token.text.isascii()
                or (token.word and following is not END_OF_TOKENS and following.text not in _SCRIPT_MARKS)
            )
        is_word = token.spaced and (token.word or len(token.text) > 1)
        return is_word and following is not END_OF_TOKENS and following.text not in _NO_ITEM

    def _relation(self) -> Node:
        sides, operators = [self._sets()], list[str]()
        if is_expression(sides[0]) and (sign := self._take("bmod", "mod", "pmod")):
            divisor = self._argument(is_whole=True)
            if sign != "bmod" and self._peek().text != "=":
                return Relation((), (sides[0],), divisor)
            sides = [Apply("remainder", (sides[0], divisor))]
        while (relation := names.RELATIONS.get(self._peek().text)) and self._peek().kind in (MARK, COMMAND):
            self._next()
            operators.append(relation)
            sides.append(self._sets())
        modulus = self._modulus()
        if not operators and modulus is None:
            return sides[0]
        if modulus is None:
            operators = ["=" if operator == "equiv" else operator for operator in operators]
        return Relation(tuple(operators), tuple(sides), modulus)

    def _modulus(self) -> Expression | None:
        opened = self._peek().text == "(" and self._peek(1).text in ("pmod", "bmod", "mod")
        if opened:
            self._next()
        if not self._take("pmod", "bmod", "mod"):
            return None
        modulus = self._argument(is_whole=True)
        if opened:
            self._expect(")")
        return modulus

    def _sets(self) -> Node:
        left = self._sum()
        combined = 0
        while operator := self._set_operator(left):
            combined += 1
            require(combined <= MAX_SETS, "too many sets")
            left = Combination(operator, left, self._sum())
        return left

    def _set_operator(self, left: Node) -> str:
        """Consume and return the operator between two sets; after an interval, the letter U is a union."""
        if isinstance(left, (Sequence, Combination)) and self._take("U"):
            return "cup"
        if self._at_set_minus(left):
            self._next()
            return "setminus"
        return self._take("cup", "cap", "setminus")

    def _at_set_minus(self, left: Node) -> bool:
        """Return whether a set in braces is subtracted from the set `left`."""
        return not is_expression(left) and self._peek().text == "-" and self._peek(1).text == "\\{"

    def _bracketed(self, opening: str) -> Node:
        closing = CLOSING[opening]
        if self._take(*closing):
            if opening == "\\{":
                return NamedSet("empty")
            raise UnreadableError("empty brackets")
        if opening == "\\{" and self._at_open_array():
            self._next()
            self._skip_columns()
            return self._system()
        if opening == "\\{" and (builder := self._attempt(self._set_builder)):
            return builder
        items, joined = self._items(*closing)
        closed = self._expect(*closing)
        if len(items) == 1 and not joined and opening != "\\{" and closed == closing[0]:
            return items[0]
        rows = _matrix_rows(items) if (opening, closed) == ("[", "]") and set(joined) <= {","} else ()
        if rows:
            return Matrix(rows)
        brackets_shown = {"\\{": "{", "{": "", "langle": "<"}.get(opening, opening)
        return Sequence(
            brackets_shown, tuple(items), {"\\}": "}", "}": "", "rangle": ">"}.get(closed, closed), tuple(joined)
        )

    def _set_builder(self) -> SetBuilder:
        """Parse `member | conditions` and the closing brace."""
        self._bars = 1
        member = self._relation()
        self._expect("|", ":")
        self._bars = 0
        conditions, joined = self._items("\\}")
        self._expect("\\}")
        if "or" in joined:
            return SetBuilder(member, (Sequence("", tuple(conditions), "", tuple(joined)),))
        return SetBuilder(member, tuple(conditions))

    def _attempt(self, read: Callable[[], T | None]) -> T | None:
        """Return the result of `read`; if it is None or `read` fails, return None and consume nothing."""
        start, tokens, bars, found = self._at, self._tokens.copy(), self._bars, None
        with suppress(UnreadableError):
            found = read()
        if found is None:
            self._at, self._tokens, self._bars = start, tokens, bars
        return found

    def _sum(self) -> Node:
        sign = self._take(*SIGNS)
        first = self._product()
        if isinstance(first, Matrix):
            return self._sum_of_matrices(_map_entries(negative, first) if sign == "-" else first)
        if not sign and (self._peek().text not in SIGNS or self._at_set_minus(first)):
            return first
        if isinstance(first, Sequence) and first.opening in ("(", "<") and not sign:
            self._has_points = True
            return replace(first, items=self._sum_of_matrices(Matrix((first.items,))).rows[0])
        total = add_term(sign or "+", None, require_expression(first))
        while (sign := self._take(*SIGNS)) and self._peek() is not END_OF_TOKENS:
            total = add_term(sign, total, require_expression(self._product()))
        require(not sign, "a sign without an operand")
        return total

    def _sum_of_matrices(self, total: Matrix) -> Matrix:
        """Add matrices, or points, of one shape entry by entry."""
        while sign := self._take("+", "-"):
            term = self._product()
            term = Matrix((term.items,)) if isinstance(term, Sequence) and self._has_points else term
            if not isinstance(term, Matrix) or [*map(len, total.rows)] != [*map(len, term.rows)]:
                raise UnreadableError("a matrix and a term of another shape")
            total = _map_entries(partial(add_term, sign), total, term)
        return total

    def _product(self) -> Node:
        first = self._unary()
        factors: list[Expression] = []
        may_be_mixed = is_integer(first)  # `first` may be the whole part of a mixed number
        while True:
            if isinstance(first, (Sequence, Combination)) and self._peek().text == "U":
                return first
            if self._take("*"):
                factor = self._unary()
            elif self._take("/"):
                dividend = make_product([require_expression(first), *factors])
                first, factors = Apply("quotient", (dividend, self._divisor())), []
                continue
            elif self._begins_factor():
                if self._peek().kind == NUMBER and not self._begins_power([first, *factors][-1]):
                    first, may_be_mixed = self._mixed(first, factors), False
                    continue
                fraction = self._peek().text == "frac"
                factor = self._unary()
                if may_be_mixed and fraction and not factors and is_proper(strip_sign(factor)):
                    first, may_be_mixed = make_mixed(first, factor), False
                    continue
            else:
                return first if not factors else make_product([require_expression(first), *factors])
            may_be_mixed = False
            if isinstance(first, Matrix):
                first = multiply_matrices(first, factor)
                continue
            if isinstance(factor, (Matrix, Sequence)):
                first, factors = self._multiple(make_product([require_expression(first), *factors]), factor), []
                continue
            factors.append(require_expression(factor))

    def _divisor(self) -> Expression:
        """Parse the factor after a slash; adjacent letters are one divisor: `AB/CD`."""
        start = self._at
        factors = [require_expression(self._unary())]
        while self._at == start:
            factors.append(require_expression(self._unary()))
        return make_product(factors)

    def _begins_power(self, before: Node) -> bool:
        """Return whether `before` is an operation and the next number has an exponent or factorial: `2^6 3^5`."""
        return isinstance(before, Apply) and self._peek(1).text in ("^", "!")

    def _multiple(self, factor: Expression, of: Matrix | Sequence) -> Matrix | Sequence:
        """Multiply each entry of a matrix or point by a factor.

        The factor of a point must not have letters, because `f(1, 2)` is not a product, unless it is added to a point.
        """
        if isinstance(of, Matrix):
            return _map_entries(lambda one: make_product([factor, one]), of)
        require((not symbols(factor) or self._has_points) and of.opening in ("(", "<"), "a list within a product")
        return replace(of, items=tuple(make_product([factor, require_expression(one)]) for one in of.items))

    def _mixed(self, whole: Node, factors: list[Expression]) -> Expression:
        """Parse the fraction of a mixed number on one line: `1 1/2`."""
        over, slash, under = (self._next() for _ in range(3))
        digits = over.text.isdecimal() and slash.text == "/" and under.text.isdecimal()
        if factors or not digits or not is_integer(whole) or not 0 < int(over.text) < int(under.text):
            raise UnreadableError("a number after a number or a letter")
        return Apply("sum", (whole, Apply("quotient", (make_number(over.text), make_number(under.text)))))

    def _begins_factor(self) -> bool:
        """Return whether the next token begins a factor without a multiplication sign."""
        token = self._peek()
        if (
            token is END_OF_TOKENS
            or token.kind == END
            or (token.text in _STOPPING and (token.kind != LETTERS or token.text == "mod"))
        ):
            return token.text == "|" and self._bars == 0 and token is not END_OF_TOKENS
        if token.kind in (MARK, COMMAND) and token.text in _OPERATORS:
            return False
        if token.text == "(" and self._peek(1).text in ("pmod", "bmod", "mod"):
            return False
        return not self._joins(token)

    def _unary(self) -> Node:
        if self._take("-"):
            return negative(require_expression(self._inside(self._unary)))
        if self._take("+"):
            return self._inside(self._unary)
        return self._postfix(self._atom())

    def _postfix(self, node: Node) -> Node:
        while True:
            if isinstance(node, (Matrix, Sequence)) and self._peek().text == "^" and self._peek(1).text in ("T", "top"):
                self._at += 2
                rows = node.rows if isinstance(node, Matrix) else (node.items,)
                node = Matrix(tuple(zip(*rows, strict=True)))
            elif self._take("^"):
                node = self._power_of(require_expression(node))
            elif self._take("!"):
                node = self._factorial(require_expression(node))
            elif self._take("degree"):
                node = Apply("degree", (require_expression(node),))
            elif self._take("%"):
                node = Apply("percent", (require_expression(node),))
            elif self._take("_"):
                node = Apply("subscript", (require_expression(node), self._base()))
            else:
                return node

    def _base(self) -> Expression:
        """Parse the base of a number, which is written as its subscript: digits or a number word."""
        word = [self._peek(at) for at in range(3)]
        value = numerals.parse_number_words([word[1].text]) if (word[0].text, word[2].text) == ("{", "}") else None
        if value is None or word[1].kind != LETTERS:
            return self._argument()
        self._at += len(word)
        return integer(int(value))

    def _factorial(self, node: Expression) -> Expression:
        """Return the factorial, or the double factorial of a small integer (the product of every second number)."""
        if self._peek().text == "!" and is_integer(node) and 0 <= node.value <= MAX_DOUBLE_FACTORIAL:
            self._next()
            return integer(math.prod(range(int(node.value), 0, -2)))
        return Apply("factorial", (node,))

    def _power_of(self, base: Expression) -> Expression:
        if self._take("degree"):
            return Apply("degree", (base,))
        if self._peek().text == "{" and self._peek(1).text == "degree" and self._peek(2).text == "}":
            self._at += 3
            return Apply("degree", (base,))
        if self._take("-"):
            return Apply("power", (base, negative(self._argument(is_whole=True))))
        return Apply("power", (base, self._argument(is_whole=True)))

    def _operation(self, name: str) -> Node | None:
        """Parse what follows the name of a function, root or figure; for other names, return None."""
        if name in names.FUNCTIONS:
            return self._function(names.FUNCTIONS[name])
        if name in names.MULTI_ARGUMENT_FUNCTIONS:
            return self._function_of_several(names.MULTI_ARGUMENT_FUNCTIONS[name])
        if name == "sqrt":
            return self._root()
        is_figure = name in _FIGURES and self._peek().kind == LETTERS
        return Symbol(f"{name} {self._next().text}") if is_figure else None

    def _command(self, name: str) -> Node:
        if name == "frac" and (derivative := self._derivative("{", "}", "{", "}")):
            return derivative
        if name in ("frac", "binom"):
            return Apply("quotient" if name == "frac" else "binomial", (self._argument(), self._argument()))
        if operation := self._operation(name):
            return operation
        if name == "Gamma" and self._peek().text == "(":
            return self._function("gamma")
        if name in ("lfloor", "lceil"):
            return self._rounded(name)
        if name in names.OVER_INDEX:
            return self._over_index(names.OVER_INDEX[name])
        if name == "det" and self._peek().kind == BEGIN and self._peek().text in names.MATRICES:
            return self._determinant(self._next().text)
        return self._symbol(name)

    def _derivative(self, *marks: str) -> Symbol | None:
        """Parse `dy` and `dx`, with these marks around them, as one symbol; for anything else, return None."""
        tokens = [self._peek(at) for at in range(len(marks) + 2)]
        names = [token.text for token in tokens if token.kind == LETTERS]
        is_quotient = [token.text for token in tokens if token.kind != LETTERS] == [*marks]
        if not is_quotient or [name[:1] + str(len(name)) for name in names] != ["d2", "d2"]:
            return None
        self._at += len(tokens)
        return Symbol("/".join(names))

    def _symbol(self, name: str) -> Node:
        """Parse a command for a symbol: a constant, a letter, an accented letter, a figure, a set, dots."""
        if name in names.CONSTANTS:
            return Constant(names.CONSTANTS[name])
        if name == "Delta" and self._peek().kind == LETTERS and not self._peek().text.isupper():
            return Symbol(self._full_name(f"Delta {subscript_text(self._argument())}"))
        if name in names.GREEK:
            return self._named(name)
        if name in names.DECORATIONS:
            decorated = subscript_text(self._argument())
            is_vector = len(decorated) == 1 and (name == "vec" or (name == "hat" and decorated in "ijk"))
            return make_letter(self._full_name(decorated if is_vector else f"{name} {decorated}"))
        if name == "mathbb":
            return self._named_set(subscript_text(self._argument()))
        if name == "emptyset":
            return NamedSet("empty")
        if name == "ldots":
            return Words("...")
        raise UnreadableError(f"the command {name}")

    def _named_set(self, name: str) -> NamedSet:
        """Parse the sign after the letter of a set, `R^+`, and return the set."""
        ahead = [self._peek(at).text for at in range(4)]
        for length, sign in ((2, ahead[1]), (4, ahead[2])):
            if ahead[0] == "^" and sign in ("+", "-", "*") and (length == 2 or (ahead[1], ahead[3]) == ("{", "}")):
                self._at += length
                return NamedSet(name + sign)
        return NamedSet(name)

    def _root(self) -> Expression:
        index: Expression = integer(2)
        if self._take("["):
            index = require_expression(self._inside(self._sum))
            self._expect("]")
        return Apply("root", (self._argument(is_whole=True), index))

    def _over_index(self, operation: str) -> Expression:
        """Parse a sum or product over an index. Its body is the factors after the range."""
        self._expect("_")
        self._expect("{")
        indices, self._indices = self._indices, self._indices | {self._peek().text}
        try:
            return self._sum_over_range(operation)
        finally:
            self._indices = indices

    def _sum_over_range(self, operation: str) -> Expression:
        """Parse the index, the range and the body of a sum or product."""
        index = self._inside(self._sum)
        self._expect("=")
        first = require_expression(self._inside(self._sum))
        self._expect("}")
        self._expect("^")
        last = self._argument(is_whole=True)
        if not isinstance(index, Symbol) or index.name in symbols(first, last):
            raise UnreadableError("an index that is not a letter, or is in its own range")
        body = require_expression(self._inside(self._product))
        if is_integer(first) and is_integer(last) and 0 <= last.value - first.value < MAX_TERMS:
            terms = (substitute(body, index.name, integer(at)) for at in range(int(first.value), int(last.value) + 1))
            return Apply(operation.removesuffix(" over"), tuple(terms))
        return Apply(operation, (body, index, first, last))

    def _rounded(self, name: str) -> Expression:
        inside = require_expression(self._inside(self._sum))
        self._expect("rfloor" if name == "lfloor" else "rceil")
        return Apply("floor" if name == "lfloor" else "ceiling", (inside,))

    def _function_of_several(self, operation: str) -> Expression:
        arguments = self._inside(self._atom)
        if not isinstance(arguments, Sequence):
            raise UnreadableError(f"{operation} of one argument")
        return Apply(operation, tuple(map(require_expression, arguments.items)))

    def _function(self, operation: str) -> Expression:
        base = exponent = None
        while mark := self._take("_", "^"):
            if mark == "_":
                base = self._argument()
            else:
                exponent = negative(self._argument()) if self._take("-") else self._argument()
        if exponent == integer(-1) and operation in names.INVERSES:
            operation, exponent = names.INVERSES[operation], None
        argument = self._function_argument()
        if base is not None and operation not in ("log10", "ln"):
            raise UnreadableError(f"{operation} with a subscript")
        value = Apply(operation, (argument,)) if base is None else Apply("log", (argument, base))
        return value if exponent is None else Apply("power", (value, exponent))

    def _at_degrees(self) -> bool:
        """Return whether the next exponent is `^\\circ`, which applies to a function's argument, not to its value."""
        return "degree" in (self._peek(1).text, self._peek(1).text == "{" and self._peek(2).text)

    def _power(self) -> Node:
        """Parse an atom with its postfix operators."""
        return self._postfix(self._atom())

    def _function_argument(self) -> Expression:
        """Parse an argument in brackets, or else the product that follows: `2x` in `sin 2x`, only `x` in `ln x/2`."""
        if (opening := self._peek().text) in ("(", "[", "{", "|"):
            argument = self._inside(self._atom)
            raised = self._peek().text == "^" and (opening in ("{", "|") or self._at_degrees())
            return require_expression(
                self._power_of(require_expression(argument)) if raised and self._take("^") else argument
            )
        if self._take("-"):
            return negative(self._nested(self._function_argument))
        factors = [require_expression(self._nested(self._power))]
        while (
            self._begins_factor() and self._peek().text not in ("(", "[") and self._peek().text not in names.FUNCTIONS
        ):
            factors.append(require_expression(self._nested(self._power)))
        return make_product(factors)

    def _environment(self, environment: str) -> Node:
        if environment in names.SYSTEMS:
            return self._system()
        if environment == names.DETERMINANT:
            return self._determinant(environment)
        if environment not in names.MATRICES:
            raise UnreadableError(f"an environment {environment}")
        return self._rows(environment)

    def _system(self) -> Node:
        """Parse the rows of a system. Either each row is a relation, or each row has a value and its condition."""
        end = next((at for at in range(self._at, len(self._tokens)) if self._tokens[at].kind == END), None)
        if end is None:
            raise UnreadableError("a system that is not closed")
        rows = self._tokens[self._at : end]
        require(rows, "a system without rows")
        followers = [*rows[1:], END_OF_TOKENS]
        if any(
            token.text == "&" and after.text not in names.RELATIONS
            for token, after in zip(rows, followers, strict=True)
        ):
            self._at = end + 1
            return parse_piecewise(rows, lambda row: type(self)(row).parse_all())
        self._tokens[self._at : end] = [token for token in rows if token.text != "&"]
        items, joined = self._items()
        self._take(".")
        require(self._next().kind == END, "a system with something other than relations")
        return Sequence("", tuple(items), "", tuple(joined))

    def _at_open_array(self) -> bool:
        """Return whether an array begins here and no `\\}` follows its end, as in a system with only a left brace."""
        if (self._peek().kind, self._peek().text) != (BEGIN, "array"):
            return False
        end = next((at for at in range(self._at, len(self._tokens)) if self._tokens[at].kind == END), self._at)
        return self._peek(end + 1 - self._at).text != "\\}"

    def _skip_columns(self) -> None:
        """Consume the column specification of an array, if it has one."""
        if self._take("{"):
            while not self._take("}"):
                require(self._next() is not END_OF_TOKENS, "an array that is not closed")

    def _determinant(self, environment: str) -> Expression:
        rows = self._rows(environment).rows
        require(0 < len(rows) <= MAX_ROWS and {*map(len, rows)} == {len(rows)}, "a large determinant, or not square")
        return determinant([[require_expression(entry) for entry in row] for row in rows])

    def _rows(self, environment: str) -> Matrix:
        if environment == "array":
            self._skip_columns()
        rows: list[list[Node]] = [[]]
        while self._peek().kind != END:
            if self._take("\\\\"):
                rows.append([])
            elif not self._take("&"):
                rows[-1].append(self._inside(self._relation))
        require(self._next() is not END_OF_TOKENS, "a matrix that is not closed")
        return Matrix(tuple(tuple(row) for row in rows if row))

    def _argument(self, is_whole: bool = False) -> Expression:
        """Parse the argument of a command: a group or a token.

        Unless `is_whole`, only the first digit or letter of a token is the argument: `\\frac12` is 1/2.
        """
        token = self._peek()
        if token.kind == NUMBER and not is_whole and token.text.isdecimal() and len(token.text) > 1:
            self._replace_next(token, token.text[1:])
            return make_number(token.text[0])
        if token.kind == LETTERS and len(token.text) > 1 and token.text not in names.CONSTANTS and not is_whole:
            self._replace_next(token, token.text[1:])
            return make_letter(token.text[0])
        return require_expression(self._inside(self._atom))

    def _atom(self) -> Node:
        token = self._next()
        require(token is not END_OF_TOKENS, "an incomplete formula")
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
        raise UnreadableError(f"{token.text!r} at the beginning of a term")

    def _number(self, digits: str) -> Number:
        if self._peek().text in ("bar", "dot"):
            return self._repeating(digits)
        in_words = self._peek().text in _REPEATING
        dots = self._peek().text == "ldots" or all(self._peek(ahead).text == "." for ahead in range(3))
        if in_words and digits[-2:-1] == ".":
            digits += digits[-1] * 2
        periodic = make_repeating(digits) if (dots or in_words) and "." in digits else None
        if periodic is None:
            return make_number(digits)
        self._at += 1 if in_words or self._peek().text == "ldots" else 3
        return periodic

    def _repeating(self, digits: str) -> Number:
        """Parse a decimal whose last digits are under a bar, and so repeat."""
        self._next()
        group, repeated, closed = self._next(), self._next(), self._next()
        whole, point, fixed = digits.partition(".")
        is_group = (group.text, repeated.kind, closed.text) == ("{", NUMBER, "}")
        require(is_group and repeated.text.isdecimal() and point, "a line over something other than decimal places")
        return make_periodic(whole, fixed, repeated.text)

    def _letters(self, token: Token) -> Node:
        name = token.text
        is_product = name in names.AMBIGUOUS_FUNCTIONS and not (token.word or self._peek().spaced)
        if not is_product and (operation := self._operation(name)):
            return operation
        if name in ("const", "constant"):
            return Symbol("C")
        if token.word and name in names.UNIT_LETTERS and self._at > 1 and self._tokens[self._at - 2].text not in SIGNS:
            raise UnreadableError("a letter that is a unit")
        if len(name) == 1 or name in names.CONSTANTS:
            return self._named(name)
        if name in names.GREEK:
            return Symbol(name)
        if token.word or name in names.NO_FACTORS or (len(name) > MAX_FACTORS and not _are_factors(name)):
            raise UnreadableError(f"the word {name!r}")
        self._at -= 1
        if derivative := self._derivative("/"):
            return derivative
        # Adjacent letters are factors; an exponent or subscript after them belongs to the last one.
        self._replace_next(token, name[1:])
        return Symbol(name[0]) if name[0] in self._indices else make_letter(name[0])

    def _named(self, name: str) -> Expression:
        """Parse the subscript, superscript and primes of a letter, and the arguments if it names a function."""
        if [self._peek(at).text for at in range(6)] == ["_", "{", "1", ",", "2", "}"]:
            self._at += 6  # `x_{1,2} = 2 \pm 1` gives two values of x
            return Symbol(name)
        following = self._peek()
        if name in "Cc" and following.kind == NUMBER and len(following.text) == 1 and not following.spaced:
            return Symbol(f"{name}_{self._next().text}")  # `C1`, a constant of a general solution
        marked = self._full_name(name)
        primes = marked.count("'") if marked.rstrip("'") == name else 0
        if marked in names.CONSTANTS and marked not in self._indices:
            return Constant(names.CONSTANTS[name])
        is_count = marked in ("C", "P") and self._peek().text == "(" and not self._names_function()
        if is_count and (number := self._attempt(lambda: self._count_call(marked))):
            return number
        if (primes or marked in "fghFGH" or self._names_function()) and self._peek().text == "(":
            argument = self._inside(self._atom)
            arguments = argument.items if isinstance(argument, Sequence) else (argument,)
            return Apply(f"call {marked}", tuple(map(require_expression, arguments)))
        return Symbol(marked)

    def _full_name(self, name: str) -> str:
        """Consume the subscript, superscript and primes after a name, in any order.

        Returns:
            The name, its subscript, its superscript and its primes, always in this order.
        """
        below = above = primes = ""
        while True:
            if not below and self._take("_"):
                below = f"_{self._subscript_text()}"
            elif self._take("'"):
                primes += "'"
            elif not above and (found := self._superscript_text()):
                above = f"^{found}"
            else:
                return name + below + above + primes

    def _subscript_text(self) -> str:
        """Parse a subscript; return its letters, digits and signs without font commands."""
        token = self._peek()
        if token.text == "{":
            return self._subscript_group()
        if token.kind == LETTERS and (token.word or len(token.text) > MAX_FACTORS):
            found = self._next().text
            while self._peek().word and not self._peek().spaced:
                found += self._next().text
            return found
        if token.kind == COMMAND and token.text not in ("frac", "sqrt"):
            return self._next().text
        return subscript_text(self._argument(is_whole=True))

    def _subscript_group(self) -> str:
        start, self._at = self._at, argument_end(self._tokens, self._at, MAX_SUBSCRIPT)
        require(self._at, "a subscript that is too long or not closed")
        return "".join(token.text for token in self._tokens[start : self._at] if token.text not in ("{", "}"))

    def _superscript_text(self) -> str:
        """Consume a superscript that is part of a name: a star or a word; return an empty string for an exponent."""
        grouped = self._peek(1).text == "{"
        token = self._peek(1 + grouped)
        word = token.kind == LETTERS and token.word and len(token.text) > 1
        closed = not grouped or self._peek(3).text == "}"
        if self._peek().text != "^" or not closed or not (word or token.text in _ABOVE):
            return ""
        self._at += 4 if grouped else 2
        return token.text

    def _names_function(self) -> bool:
        """Return whether a letter names a function: parentheses with letters and an equals sign follow, `y(x) =`.

        A single argument must be a usual argument letter, or occur after the equals sign: `v(h) = \\sqrt{2gh}`.
        """
        if self._peek().text != "(":
            return False
        letters = [self._peek(at) for at in range(1, 2 * MAX_ARGUMENTS, 2)]
        joined = [self._peek(at).text for at in range(2, 2 * MAX_ARGUMENTS + 1, 2)]
        count = next((at for at, text in enumerate(joined) if text != ","), MAX_ARGUMENTS) + 1
        arguments = [token.text for token in letters[:count] if _is_letter(token)]
        end = 2 * count
        if len(arguments) != count or self._peek(end).text != ")" or self._peek(end + 1).text != "=":
            return False
        following = self._tokens[self._at + end + 2 :]
        return count > 1 or arguments[0] in _ARGUMENTS or any(arguments[0] in token.text for token in following)

    def _count_call(self, name: str) -> Apply | None:
        """Parse the arguments of `C(5, 2)` or `P(5, 2)`, a number of combinations or permutations, or return None."""
        pair = self._inside(self._atom)
        if not isinstance(pair, Sequence) or (pair.joined, pair.closing) != ((",",), ")"):
            return None
        n, k = map(require_expression, pair.items)
        if is_integer(n) and is_integer(k) and n.value < k.value:
            return None
        chosen = Apply("binomial", (n, k))
        return chosen if name == "C" else Apply("product", (chosen, Apply("factorial", (k,))))

    def _absolute(self) -> Node:
        self._bars += 1
        inside = self._nested(self._sum)
        self._bars -= 1
        self._expect("|")
        return Apply("abs", (require_expression(inside),))

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END_OF_TOKENS

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, *texts: str) -> str:
        """Consume and return the next token's text if it is one of these; otherwise return an empty string."""
        token = self._peek()
        if token is END_OF_TOKENS or token.text not in texts:
            return ""
        self._at += 1
        return token.text

    def _expect(self, *texts: str) -> str:
        found = self._take(*texts)
        if not found:
            raise UnreadableError(f"{self._peek().text!r} instead of {texts[0]!r}")
        return found

    def _inside(self, read: Callable[[], T]) -> T:
        """Call `read` for a part in which a bar opens an absolute value, as in brackets, and return its result."""
        bars, self._bars = self._bars, 0
        try:
            return self._nested(read)
        finally:
            self._bars = bars

    def _nested(self, read: Callable[[], T]) -> T:
        """Call `read` one nesting level deeper, and return its result."""
        require(self._depth < MAX_DEPTH, "too deeply nested")
        self._depth += 1
        try:
            return read()
        finally:
            self._depth -= 1

    def _replace_next(self, token: Token, text: str) -> None:
        """Replace the next token's text by its unread part."""
        self._tokens[self._at] = token._replace(text=text)


def _matrix_rows(items: list[Node]) -> tuple[tuple[Node, ...], ...]:
    """Return the rows of a matrix in nested lists, `[[1, 2], [3, 4]]`; empty if it is not a matrix."""
    rows = tuple(item.items for item in items if isinstance(item, Sequence) and item.opening + item.closing == "[]")
    return rows if len(rows) == len(items) > 1 and len(set(map(len, rows))) == 1 else ()


def multiply_matrices(matrix: Matrix, by: Node) -> Matrix:
    """Multiply two small matrices.

    Raises:
        UnreadableError: the shapes do not match, or a matrix exceeds `MAX_ROWS`.
    """
    rows = matrix.rows
    columns = tuple(zip(*by.rows, strict=True)) if isinstance(by, Matrix) and len(set(map(len, by.rows))) == 1 else ()
    lengths = {*map(len, rows), *map(len, columns)}
    require(columns and len(lengths) == 1 and max(len(rows), len(columns), *lengths) <= MAX_ROWS, "other shapes")
    return Matrix(tuple(tuple(_inner_product(row, column) for column in columns) for row in rows))


def _inner_product(row: tuple[Node, ...], column: tuple[Node, ...]) -> Expression:
    pairs = zip(row, column, strict=True)
    return Apply(
        "sum", tuple(make_product([require_expression(one), require_expression(other)]) for one, other in pairs)
    )


def _map_entries(combine: Callable[..., Expression], *matrices: Matrix) -> Matrix:
    """Return the matrix whose entries combine the entries of matrices of one shape."""
    rows = zip(*(matrix.rows for matrix in matrices), strict=True)
    return Matrix(tuple(tuple(map(combine, *(map(require_expression, row) for row in same))) for same in rows))


def _is_letter(token: Token) -> bool:
    """Return whether a token is a single letter, Latin or Greek."""
    return token.text in names.GREEK or (token.kind == LETTERS and len(token.text) == 1)


def _are_factors(letters: str) -> bool:
    """Return whether three or more letters may be factors: three letters, no vowel, or neighbors in the alphabet.

    Capitals that are close in the alphabet, such as `ABC` or `PQR`, name a figure. `Max` is a word.
    """
    codes = sorted(map(ord, letters))
    if letters.isupper() and codes[-1] - codes[0] <= MAX_LABELS:
        return False
    if letters.islower() and codes == list(range(codes[0], codes[0] + len(codes))):
        return True
    has_vowel = not _VOWELS.isdisjoint(letters.lower())
    return letters.isascii() and (
        len(letters) <= MAX_LETTERS if not has_vowel else len(letters) == 3 and not letters.istitle()
    )
