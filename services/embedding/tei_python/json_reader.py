"""Reads a JSON body the way serde_json does, so that a faulty one is refused with the words that TEI uses.

TEI's bodies are read by serde_json 1.0.140 (its Cargo.lock): what is wrong is named by the field and by the line and
column, counted in bytes, at which the reader stood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from typing import Any, NoReturn

MAX_DEPTH = 127
"""Arrays and objects inside each other; serde_json refuses more."""

LITERALS = {"n": ("null", None), "t": ("true", True), "f": ("false", False)}

_SPACE = re.compile(r"[ \n\t\r]*")
_STRING_HEAD = re.compile(r'(?:[^"\\\x00-\x1f]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_SURROGATE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})|u([dD][c-fC-F][0-9a-fA-F]{2})|.)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COUNTS = re.compile(r"\[\s*(?:0|[1-9][0-9]{0,15})(?:\s*,\s*(?:0|[1-9][0-9]{0,15}))*\s*\]".replace(r"\s", r"[ \n\t\r]"))
_NUMBER_HEAD = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:(?<=[0-9])\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?")


class BodyError(Exception):
    """A body that cannot be read.

    Args:
        status: 400 where it is no JSON, 422 where it is not what the route takes.
        message: TEI's words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Mismatch(Exception):
    """What was read is not what was expected; the object around it says where the reader stands."""


class Reader:
    """A position in a JSON text.

    Args:
        body: the text, UTF-8.
    """

    def __init__(self, body: bytes) -> None:
        # A byte that is no UTF-8 becomes a lone surrogate, by which it is found again.
        self._text = body.decode("utf-8", "surrogateescape")
        self._at = 0
        self._depth = 0
        self._path: list[str] = []

    @contextmanager
    def inside(self, segment: str) -> Iterator[None]:
        """While the value of a field, or an element, is read: errors name it."""
        self._path.append(segment)
        yield
        self._path.pop()  # kept on an error: the outermost reader reports where it happened

    def refuse(self, mismatch: str) -> NoReturn:
        """Raises BodyError (422): what was just read is not what the route takes."""
        raise self._error(422, mismatch, self._at)

    def peek(self) -> str:
        """The next character that is no space, which is not consumed; empty at the end."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def value_ahead(self) -> str:
        """Like `peek`, where a value must come."""
        return self.peek() or self.malformed("EOF while parsing a value")

    def any(self, *, checked: bool = True) -> Any:
        """The next value, whatever it is.

        Args:
            checked: whether strings must be valid Unicode; serde_json does not look into what it ignores.
        """
        ahead = self.value_ahead()
        if ahead == '"':
            return self.string(checked=checked)
        if ahead == "[":
            return self._array(checked=checked)
        if ahead == "{":
            return self._object(checked=checked)
        if ahead in LITERALS:
            return self.literal(ahead)
        return self.number()

    def elements(self, *, checked: bool = True) -> Iterator[None]:
        """Stands before each element of the array that comes next, then after the array."""
        self._enter()
        first = True
        while (ahead := self.peek()) != "]":
            if not first:
                self._after_comma(ahead, "]", "a list", checked)
            elif not ahead:
                self.malformed("EOF while parsing a list")
            first = False
            yield
        self._leave()

    def members(self, *, checked: bool = True) -> Iterator[str]:
        """The keys of the object that comes next, each read before its colon; then stands after the object."""
        self._enter()
        first = True
        while True:
            with self.inside(".?" if checked else ""):
                ahead = self.peek()
                if ahead == "}":
                    break
                if not first:
                    ahead = self._after_comma(ahead, "}", "an object", checked)
                elif not ahead:
                    self.malformed("EOF while parsing an object")
                if ahead != '"':
                    self.malformed("key must be a string")
                key = self.string(checked=checked)
            first = False
            yield key
        self._leave()

    def colon(self) -> None:
        """Consumes the colon between a key and its value."""
        ahead = self.peek()
        if ahead != ":":
            self.malformed("expected `:`" if ahead else "EOF while parsing an object")
        self._at += 1

    def skip_end(self, bracket: str) -> None:
        """Consumes the end of the array or object around a mismatch, if it comes next: there serde_json reports it."""
        if self.peek() == bracket or (bracket == "]" and self.peek() == ","):
            self._at += 1

    def literal(self, first: str) -> Any:
        """`null`, `true` or `false`, by its first letter."""
        word, value = LITERALS[first]
        for letter in word:
            ahead = self._text[self._at : self._at + 1]
            if not ahead:
                raise self._error(400, "EOF while parsing a value", self._at)
            self._at += 1
            if ahead != letter:
                raise self._error(400, "expected ident", self._at)
        return value

    def number(self) -> int | float:
        """The next number: an int where it is written as one that 64 bits hold."""
        match = _NUMBER.match(self._text, self._at)
        following = self._text[match.end() : match.end() + 1] if match else ""
        if match is None or following in self._goes_on(match):
            self._malformed_number()
        self._at = match.end()
        if match[1] or match[2] or match[0] == "-0":
            return self._finite(float(match[0]))
        # The digits are counted first: Python refuses to read very long integers.
        if len(match[0]) > 20 or not -(2**63) <= (value := int(match[0])) < 2**64:
            return self._finite(float(match[0]))
        return value

    def string(self, *, checked: bool = True) -> str:
        """The next string, which begins here."""
        begin = self._at + 1
        try:
            value, self._at = scanstring(self._text, begin, True)
        except json.JSONDecodeError:
            self._malformed_string(begin, checked=checked)
        if checked and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                self._refuse_lone_surrogates(begin, self._at)
                raise self._error(400, "invalid unicode code point", self._at) from None
        return str(value)

    def _array(self, *, checked: bool) -> list[Any]:
        counts = _COUNTS.match(self._text, self._at)
        if counts and self._depth < MAX_DEPTH:  # token ids, of which a body can hold a million
            self._at = counts.end()
            return list(json.loads(counts[0]))
        values: list[Any] = []
        for _ in self.elements(checked=checked):
            with self.inside(f"[{len(values)}]" if checked else ""):
                values.append(self.any(checked=checked))
        return values

    def _object(self, *, checked: bool) -> dict[str, Any]:
        members = {}
        for key in self.members(checked=checked):
            self.colon()
            with self.inside(f".{key}" if checked else ""):
                members[key] = self.any(checked=checked)
        return members

    @staticmethod
    def _goes_on(number: re.Match[str]) -> tuple[str, ...]:
        """Characters that after this much of a number make it a faulty one."""
        if number[2]:
            return ()
        if number[1]:
            return ("e", "E")
        return (".", "e", "E", *"0123456789")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.malformed("recursion limit exceeded")
        self._at += 1

    def _leave(self) -> None:
        self._depth -= 1
        self._at += 1

    def _after_comma(self, ahead: str, bracket: str, what: str, checked: bool) -> str:
        if not ahead:
            self.malformed(f"EOF while parsing {what}")
        if ahead != ",":
            self.malformed(f"expected `,` or `{bracket}`")
        self._at += 1
        if (ahead := self.value_ahead()) == bracket:
            self.malformed("trailing comma" if checked or bracket == "}" else "expected value")
        return ahead

    def _finite(self, value: float) -> float:
        if value in (float("inf"), float("-inf")):
            raise self._error(400, "number out of range", self._at)
        return value

    def _malformed_number(self) -> NoReturn:
        head = _NUMBER_HEAD.match(self._text, self._at)
        assert head is not None
        if not head[0]:
            self.malformed("expected value")
        self._at = head.end()
        if self._at == len(self._text):
            raise self._error(400, "EOF while parsing a value", self._at)
        self.malformed("invalid number")

    def _malformed_string(self, begin: int, *, checked: bool) -> NoReturn:
        head = _STRING_HEAD.match(self._text, begin)
        assert head is not None
        at, end = head.end(), len(self._text)
        if checked:
            self._refuse_lone_surrogates(begin, at)
        wrong = self._text[at : at + 2]
        beyond = at + (6 if wrong == "\\u" else len(wrong))
        if not wrong or wrong == "\\" or beyond > end:
            raise self._error(400, "EOF while parsing a string", end)
        if wrong[0] != "\\":
            raise self._error(400, "control character (\\u0000-\\u001F) found while parsing a string", at + 1)
        raise self._error(400, "invalid escape", beyond)

    def _refuse_lone_surrogates(self, begin: int, end: int) -> None:
        at = begin
        while escape := _SURROGATE.search(self._text, at, end):
            at = escape.end()
            if escape[2]:
                raise self._error(400, "lone leading surrogate in hex escape", at)
            if escape[1]:
                at = self._second_surrogate(at, end)

    def _second_surrogate(self, at: int, end: int) -> int:
        for expected in "\\u":
            if at == end:
                return at  # what is wrong there is found next
            at += 1
            if self._text[at - 1] != expected:
                raise self._error(400, "unexpected end of hex escape", at)
        at += 4
        if not 0xDC00 <= int(self._text[at - 4 : at], 16) <= 0xDFFF:
            raise self._error(400, "lone leading surrogate in hex escape", at)
        return at

    def malformed(self, message: str) -> NoReturn:
        """Raises BodyError (400): no JSON has what comes next here."""
        raise self._error(400, message, self._at, beyond=1)

    def _error(self, status: int, message: str, at: int, beyond: int = 0) -> BodyError:
        """An error at a position, in characters, and `beyond` more bytes as far as there are any."""
        read = self._text[:at].encode("utf-8", "surrogateescape")
        rest = self._text[at : at + beyond].encode("utf-8", "surrogateescape")
        lines = read.split(b"\n")
        place = f"at line {len(lines)} column {len(lines[-1]) + min(beyond, len(rest))}"
        where = "".join(self._path).removeprefix(".").removesuffix("?" if len(self._path) == 1 else "")
        what = "parse the request body as JSON" if status == 400 else "deserialize the JSON body into the target type"
        return BodyError(status, f"Failed to {what}: {where + ': ' if where else ''}{message} {place}")
