"""What a field of a body may hold, and TEI's words where it holds something else (those of serde 1.0.219)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from services.embedding.tei_python.json_reader import Mismatch, Reader

MISSING = object()
_EXPONENT = re.compile(r"e[+]?(-?)0?")


class Shape(Protocol):
    """How a value is read."""

    def read(self, reader: Reader) -> Any:
        """The next value; raises BodyError, or Mismatch, where it is of another kind."""


def invalid_type(reader: Reader, expected: str) -> NoReturn:
    """Refuses the next value: it is not `expected`. Raises BodyError."""
    ahead = reader.value_ahead()
    if ahead == "[":
        reader.refuse(f"invalid type: sequence, expected {expected}")
    if ahead == "{":
        reader.refuse(f"invalid type: map, expected {expected}")
    reader.refuse(f"invalid type: {_described(reader.any())}, expected {expected}")


def _described(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"integer `{value}`"
    if isinstance(value, float):
        shortest = _EXPONENT.sub(r"e\1", repr(value))  # 1e-7 and 1e20, where Python writes 1e-07 and 1e+20
        return f"floating point `{shortest}`"
    return f"string {json.dumps(value, ensure_ascii=False)}"


@dataclass(frozen=True)
class Text:
    """A string."""

    def read(self, reader: Reader) -> str:
        """The string."""
        return reader.string() if reader.value_ahead() == '"' else invalid_type(reader, "a string")


@dataclass(frozen=True)
class Flag:
    """`true` or `false`."""

    def read(self, reader: Reader) -> bool:
        """The flag."""
        ahead = reader.value_ahead()
        return bool(reader.literal(ahead)) if ahead in ("t", "f") else invalid_type(reader, "a boolean")


@dataclass(frozen=True)
class Count:
    """A whole number that is not negative."""

    def read(self, reader: Reader) -> int:
        """The number."""
        if reader.value_ahead() not in tuple("-0123456789"):
            invalid_type(reader, "usize")
        value = reader.number()
        if isinstance(value, int) and value >= 0:
            return value
        reader.refuse(f"invalid {'value' if isinstance(value, int) else 'type'}: {_described(value)}, expected usize")


@dataclass(frozen=True)
class Choice:
    """One of some words.

    Args:
        words: each word and what it means, in the order in which TEI lists them.
    """

    words: Mapping[str, str]

    def read(self, reader: Reader) -> str:
        """What the word means."""
        if reader.value_ahead() != '"':
            reader.malformed("expected value")
        if (word := reader.string()) not in self.words:
            listed = [f"`{known}`" for known in self.words]
            known = f"one of {', '.join(listed)}" if len(listed) > 2 else " or ".join(listed)
            reader.refuse(f"unknown variant `{word}`, expected {known}")
        return self.words[word]


@dataclass(frozen=True)
class Maybe:
    """A value or null.

    Args:
        shape: of the value.
    """

    shape: Shape

    def read(self, reader: Reader) -> Any:
        """The value, None for null."""
        return reader.literal("n") if reader.value_ahead() == "n" else self.shape.read(reader)


@dataclass(frozen=True)
class ListOf:
    """An array.

    Args:
        shape: of its elements.
    """

    shape: Shape

    def read(self, reader: Reader) -> list[Any]:
        """The elements."""
        if reader.value_ahead() != "[":
            invalid_type(reader, "a sequence")
        values: list[Any] = []
        for _ in reader.elements():
            with reader.inside(f"[{len(values)}]"):
                values.append(self.shape.read(reader))
        return values


@dataclass(frozen=True)
class Untagged:
    """A value of one of several kinds, told by what it is.

    Args:
        name: TEI's name for it.
        take: gives what is kept of the value; raises Mismatch where it is of none of the kinds.
    """

    name: str
    take: Callable[[Any], Any]

    def read(self, reader: Reader) -> Any:
        """What `take` gives."""
        value = reader.any()
        try:
            return self.take(value)
        except Mismatch:
            raise Mismatch(f"data did not match any variant of untagged enum {self.name}") from None


@dataclass(frozen=True)
class Field:
    """A field of an object.

    Args:
        shape: of its value.
        default: its value where it is missing; MISSING where it must be there.
        trailing: whether it may be left out where the object is written as an array.
    """

    shape: Shape
    default: Any = MISSING
    trailing: bool = False


@dataclass(frozen=True)
class Struct:
    """An object with known fields; others are ignored. An array with the values in order will do.

    Args:
        name: TEI's name for it.
        fields: by name.
    """

    name: str
    fields: Mapping[str, Field]

    def read(self, reader: Reader) -> dict[str, Any]:
        """The value of every field."""
        ahead = reader.value_ahead()
        if ahead not in tuple("{["):
            invalid_type(reader, f"struct {self.name}")
        try:
            values = self._by_name(reader) if ahead == "{" else self._in_order(reader)
        except Mismatch as mismatch:
            reader.skip_end("}" if ahead == "{" else "]")
            reader.refuse(str(mismatch))
        for index, (name, field) in enumerate(self.fields.items()):
            if name in values:
                continue
            if ahead == "{" and field.default is MISSING:
                reader.refuse(f"missing field `{name}`")
            if ahead == "[" and not field.trailing:
                reader.refuse(f"invalid length {index}, expected struct {self.name} with {len(self.fields)} elements")
            values[name] = field.default
        return values

    def _by_name(self, reader: Reader) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name in reader.members():
            if name in values:
                raise Mismatch(f"duplicate field `{name}`")
            reader.colon()
            with reader.inside(f".{name}"):
                if name in self.fields:
                    values[name] = self.fields[name].shape.read(reader)
                else:
                    reader.any(checked=False)
        return values

    def _in_order(self, reader: Reader) -> dict[str, Any]:
        values: dict[str, Any] = {}
        names = iter(self.fields)
        for index, _ in enumerate(reader.elements()):
            name = next(names, None)
            if name is None:
                reader.malformed("trailing characters")
            with reader.inside(f"[{index}]"):
                values[name] = self.fields[name].shape.read(reader)
        return values
