"""What the parts of the parser ask of one another: a recursive descent, each part in a file of its own.

`parser` reads lists and relations, `sums` sums and products, `functions` commands, `environments` matrices and systems,
`atoms` numbers, letters and brackets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rewardstack_verifier.numbers.tree import Expression
from rewardstack_verifier.reading.lexer import Token
from rewardstack_verifier.reading.stream import Stream
from rewardstack_verifier.reading.syntax import Node


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
