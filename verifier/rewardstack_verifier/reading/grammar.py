"""What the parts of the parser share: tokens in turn, and what they ask of one another.

It is a recursive descent, each part in a file of its own: `parser` reads lists and relations, `sums` sums and products,
`functions` commands, `environments` matrices and systems, `atoms` numbers, letters and brackets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from rewardstack_verifier.numbers.tree import Expression
from rewardstack_verifier.reading.lexer import END, Token, UnreadError
from rewardstack_verifier.reading.syntax import Node

T = TypeVar("T")
MAX_DEPTH = 40
"""Brackets, fractions and functions within one another."""
AFTER_ALL = Token(END, "")
"""What stands behind the last token."""


class Stream:
    """Tokens, read one after another.

    Args:
        tokens: from `lex`.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = list(tokens)
        self._at = 0
        self._depth = 0
        self._bars = 0
        self._indices: frozenset[str] = frozenset()
        """Of the sums around: there `i` is a letter."""

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else AFTER_ALL

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, *texts: str) -> str:
        """The next token's text if it is one of these, else nothing."""
        token = self._peek()
        if token is AFTER_ALL or token.text not in texts:
            return ""
        self._at += 1
        return token.text

    def _expect(self, *texts: str) -> str:
        found = self._take(*texts)
        if not found:
            raise UnreadError(f"{self._peek().text!r} instead of {texts[0]!r}")
        return found

    def _inside(self, read: Callable[[], T]) -> T:
        """What `read` gives, in brackets of its own: bars open anew."""
        bars, self._bars = self._bars, 0
        try:
            return self._nested(read)
        finally:
            self._bars = bars

    def _nested(self, read: Callable[[], T]) -> T:
        """What `read` gives, one level further in."""
        if self._depth >= MAX_DEPTH:
            raise UnreadError("too deeply nested")
        self._depth += 1
        try:
            return read()
        finally:
            self._depth -= 1

    def _leave(self, token: Token, text: str) -> None:
        """Leaves of the next token what is not taken yet."""
        self._tokens[self._at] = token._replace(text=text)


class Grammar(Stream, ABC):
    """Tokens, and what reads them further up."""

    @abstractmethod
    def whole(self) -> Node:
        """All tokens as one node."""

    @abstractmethod
    def _items(self, *ends: str) -> tuple[list[Node], list[str]]:
        """Items up to one of the brackets, which is not taken, and what joins them."""

    @abstractmethod
    def _joins(self, token: Token) -> bool:
        """Whether the next token is "and" or the like."""

    @abstractmethod
    def _relation(self) -> Node:
        """What stands between two commas."""

    @abstractmethod
    def _bracketed(self, opening: str) -> Node:
        """What stands behind a bracket, which is taken, up to the one that closes it."""

    @abstractmethod
    def _atom(self) -> Node:
        """A number, a letter, or what is held together by a command or by brackets."""

    @abstractmethod
    def _argument(self, whole: bool = False) -> Expression:
        """The argument of a command: a group, or one token, of a number one digit unless it is taken `whole`."""

    @abstractmethod
    def _named(self, name: str) -> Expression:
        """A letter with its subscript, primes, and the arguments of a function that it names."""

    @abstractmethod
    def _marked(self, name: str) -> str:
        """A name with the subscripts, primes and other marks that stand behind it."""
