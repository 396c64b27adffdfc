"""Lists, tuples, sets and intervals: what stands between their commas, and whether its order matters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_SEPARATOR = re.compile(r"\s*(?:[,;]\s*(?:and\b|or\b)?|\b(?:and|or)\b|\\(?:land|lor|wedge|vee)(?![A-Za-z]))\s*")
_OR = frozenset(("or", "\\lor", "\\vee"))
_TOKEN = re.compile(rf"\\[{{}}]|\\[A-Za-z]+|[()\[\]{{}}]|{_SEPARATOR.pattern}|.", re.DOTALL)
_OPEN = {"(": ")", "[": "]", "{": "}", "\\{": "}"}
_CLOSE = frozenset((")", "]", "}", "\\}"))
_WHOLE = re.compile(r"\\begin|\\cup|\\cap|\\setminus|\\mid|\|")


class Group(NamedTuple):
    """Several things in one answer.

    Args:
        brackets: `()`, `[]`, `(]`, `[)`, `{}`, or empty for a bare list.
        items: what stands between the commas.
        joined: the word that joins it, "and" or "or"; empty for commas alone.
    """

    brackets: str
    items: tuple[str, ...]
    joined: str = ""

    @property
    def unordered(self) -> bool:
        """A set; things joined by words; solutions such as `x = 1, x = 2`; a list of points."""
        if self.brackets:
            return self.brackets == "{}"
        return bool(self.joined) or all("=" in item or item[:1] == "(" for item in self.items)


def group(text: str) -> Group | None:
    """The group that a tidied text is; None for a single thing, and for matrices, unions and sets given by a rule."""
    text = text.strip()
    if _WHOLE.search(text):
        return None
    inner, brackets = _unwrap(text)
    items, joined = _split(inner)
    if len(items) < 2 and not text.startswith("\\{"):
        return None
    return Group(brackets, items, joined)


def _unwrap(text: str) -> tuple[str, str]:
    """The inside of brackets that enclose the whole text, and the brackets."""
    for opening, closing in (("\\{", "\\}"), ("{", "}"), ("(", ")"), ("(", "]"), ("[", "]"), ("[", ")")):
        if text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : -len(closing)]
            if _balanced(inner):
                return inner, opening[-1] + closing[-1]
    return text, ""


def _balanced(text: str) -> bool:
    """Whether every bracket that closes here was opened here; half-open intervals mix their brackets."""
    depth = 0
    for token in _TOKEN.findall(text):
        depth += (token in _OPEN) - (token in _CLOSE)
        if depth < 0:
            return False
    return depth == 0


def _split(text: str) -> tuple[tuple[str, ...], str]:
    """What stands between the separators outside of brackets, and the word among these.

    Where there are semicolons, commas separate nothing: `p = 5, q = 2; p = 7, q = 2` are two solutions.
    """
    items = [""]
    separators = []
    depth = 0
    for token in _TOKEN.findall(text):
        depth += (token in _OPEN) - (token in _CLOSE)
        if depth == 0 and _SEPARATOR.fullmatch(token):
            separators.append(token.strip())
            items.append("")
        else:
            items[-1] += token
    words = [separator.strip(" ,;") for separator in separators if separator.strip(" ,;")]
    if ";" in separators and "," in separators:
        items = _without_commas(items, separators)
    return tuple(item.strip() for item in items if item.strip()), _joining(words)


def _joining(words: Sequence[str]) -> str:
    """The word that all of these are, "and" where they differ, empty without any."""
    if not words:
        return ""
    return "or" if all(word in _OR for word in words) else "and"


def _without_commas(items: Sequence[str], separators: Sequence[str]) -> list[str]:
    """Items put together again where only a comma separates them."""
    whole = [items[0]]
    for separator, item in zip(separators, items[1:], strict=True):
        if separator == ",":
            whole[-1] += f",{item}"
        else:
            whole.append(item)
    return whole
