"""Tokens as a tree: lists and sets of relations; the rest of the grammar is read by its base classes."""

from __future__ import annotations

from rewardstack_verifier.numbers.tree import Apply, Expression
from rewardstack_verifier.reading.atoms import CLOSING, Atoms
from rewardstack_verifier.reading.grammar import AFTER_ALL
from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, Token, UnreadError
from rewardstack_verifier.reading.names import JOINING, RELATIONS
from rewardstack_verifier.reading.syntax import (
    Combination,
    Matrix,
    NamedSet,
    Node,
    Relation,
    Sequence,
    SetBuilder,
    is_expression,
)

MAX_SETS = 50
"""Unions, intersections and differences side by side."""
_RAISING = frozenset("^_'")


def formula(tokens: list[Token]) -> Node:
    """The tree of an answer that is a formula, or a list of such.

    Args:
        tokens: from `lex`.

    Raises:
        UnreadError: it holds what this does not know: words, an integral.
    """
    return Parser(tokens).whole()


class Parser(Atoms):
    """Reads tokens one after another."""

    def whole(self) -> Node:
        """All tokens as one node."""
        if not self._tokens:
            raise UnreadError("nothing")
        items, joined = self._items()
        self._take(".")
        if self._at < len(self._tokens):
            raise UnreadError(f"{self._peek().text!r} where an answer should end")
        return items[0] if len(items) == 1 and not joined else Sequence("", tuple(items), "", tuple(joined))

    def _items(self, *ends: str) -> tuple[list[Node], list[str]]:
        """Items up to one of the brackets, which is not taken, and what joins them."""
        items: list[Node] = [self._relation()]
        joined: list[str] = []
        while True:
            joiner = self._joiner()
            if not joiner or self._peek() is AFTER_ALL or self._peek().text in ends:
                return items, joined
            joined.append(joiner)
            items.append(self._relation())

    def _joiner(self) -> str:
        """The last of the commas and words between two items; nothing where there is none."""
        joiner = ""
        while True:
            token = self._peek()
            if token.kind in (MARK, COMMAND) and token.text in (",", ";", ":", "\\\\"):
                joiner = joiner or {"\\\\": ","}.get(token.text, token.text)
            elif self._joins(token):
                joiner = JOINING[token.text]
            else:
                return joiner
            self._next()

    def _joins(self, token: Token) -> bool:
        """Whether the next token is "and" or the like; a letter alone may be one where it is upright and not raised."""
        if token.kind == COMMAND:
            return token.text in ("land", "lor")
        if token.kind != LETTERS or token.text not in JOINING:
            return False
        behind = self._peek(1)
        return len(token.text) > 1 or (token.word and behind is not AFTER_ALL and behind.text not in _RAISING)

    def _relation(self) -> Node:
        sides, operators = [self._sets()], list[str]()
        if is_expression(sides[0]) and (sign := self._take("bmod", "mod", "pmod")):
            divisor = self._argument(whole=True)
            if sign != "bmod" and self._peek().text != "=":
                return Relation((), (sides[0],), divisor)
            sides = [Apply("remainder", (sides[0], divisor))]
        while (relation := RELATIONS.get(self._peek().text)) and self._peek().kind in (MARK, COMMAND):
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
        modulus = self._argument(whole=True)
        if opened:
            self._expect(")")
        return modulus

    def _sets(self) -> Node:
        left = self._sum()
        combined = 0
        while operator := self._set_operator(left):
            combined += 1
            if combined > MAX_SETS:
                raise UnreadError("too many sets")
            left = Combination(operator, left, self._sum())
        return left

    def _set_operator(self, left: Node) -> str:
        """What combines two sets: the letter U as well, behind an interval."""
        if isinstance(left, (Sequence, Combination)) and self._take("U"):
            return "cup"
        return self._take("cup", "cap", "setminus")

    def _bracketed(self, opening: str) -> Node:
        closing = CLOSING[opening]
        if self._take(*closing):
            if opening == "\\{":
                return NamedSet("empty")
            raise UnreadError("empty brackets")
        if opening == "\\{" and (builder := self._set_builder()):
            return builder
        items, joined = self._items(*closing)
        closed = self._expect(*closing)
        if len(items) == 1 and not joined and opening != "\\{" and closed == closing[0]:
            return items[0]
        rows = _rows(items) if (opening, closed) == ("[", "]") and set(joined) <= {","} else ()
        if rows:
            return Matrix(rows)
        shown = {"\\{": "{", "{": "", "langle": "<"}.get(opening, opening)
        return Sequence(shown, tuple(items), {"\\}": "}", "}": "", "rangle": ">"}.get(closed, closed), tuple(joined))

    def _set_builder(self) -> SetBuilder | None:
        """A member, a bar or a colon, and conditions up to the brace that closes; None, nothing taken, if not so."""
        start, self._bars = self._at, 1
        try:
            member = self._relation()
            self._expect("|", ":")
            self._bars = 0
            conditions, joined = self._items("\\}")
            self._expect("\\}")
        except UnreadError:
            self._at, self._bars = start, 0
            return None
        if "or" in joined:
            return SetBuilder(member, (Sequence("", tuple(conditions), "", tuple(joined)),))
        return SetBuilder(member, tuple(conditions))


def _rows(items: list[Node]) -> tuple[tuple[Node, ...], ...]:
    """The rows of a matrix as programs write it, `[[1, 2], [3, 4]]`; nothing where these are none."""
    rows = tuple(item.items for item in items if isinstance(item, Sequence) and item.opening + item.closing == "[]")
    return rows if len(rows) == len(items) > 1 and len(set(map(len, rows))) == 1 else ()
