"""Names of values: `x = 5` for 5, `x = 1, 2` for the solutions 1 and 2, `y = 2, x = 1` for the point (1, 2)."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics.notation import squeeze
from rewardstack_rules.mathematics.structure import Group, group

_LETTER = r"(?:[A-Za-z]|\\[a-z]+)"
_NAME = (
    rf"(?:{_LETTER}|\\frac\{{d\w?\}}\{{d\w\}})'{{0,3}}(?:_\{{?\w+\}}?)?(?:\^\{{-1\}})?\s?(?:\(\w+\))?"
    rf"|\({_LETTER}(?:\s*,\s*{_LETTER})*\s*\)"
    r"|[A-Z]'?(?:\s*(?:\\(?:cap|cup|setminus|times)(?![A-Za-z])|-)\s*[A-Z]'?){1,4}"
)
_NAMED = re.compile(rf"\s*({_NAME})\s*(?:(?<![<>!])=|\\(?:in|approx)(?![A-Za-z]))\s*([^=]+)")
_REVERSED = re.compile(r"\s*([^=<>!]*\d[^=<>!]*)=\s*([A-Za-z])\s*")
_ARGUMENTS = re.compile(r"_\{[^{}]*\}|_\w|(?<=[A-Za-z'])\([^()]*\)|\\text\{[^{}]*\}")
_PARAMETER = re.compile(
    r"([^,]+?)\s*[,(]?\s*(?:\\text\{\s*(?:where|for)(?: any| an)?(?: integer)?\s*\}|where|for)?\s*"
    r"([A-Za-z])\s*\\in\s*\\(?:mathbb\s*\{?Z\}?|Z|text\{Z\})\)?"
)
_TOKEN = re.compile(r"\\[A-Za-z]+|.", re.DOTALL)
_COMPUTED = re.compile(r"\s*\\(?:int|sum|prod|lim)(?![A-Za-z])")
_INDEX = re.compile(r"_\{[^{}]*\}")
_COMMANDS = re.compile(r"\\[A-Za-z]+")
_MULTIPLE = re.compile(r"(?<![A-Za-z\\])([kmn])(?= ?\\pi)|(?<=\\pi )([kmn])(?![A-Za-z])")
_IMPLIES = re.compile(
    r"[^=]{1,80}=[^>].*(?:\\(?:[Rr]ightarrow|implies|Longrightarrow|to)(?![A-Za-z])|=>) ?(?=[^=]{1,40}=)"
)
_SEVERAL = re.compile(r"((?:[A-Za-z] ?= ?){1,9}[A-Za-z]) ?= ?([^=A-Za-z]+)")
_FOR_ALL = re.compile(r"\s*,?\s*(?:\\text\{\s*|\()?(?:for (?:all|any|every|each)\b|\\forall(?![A-Za-z])).*", re.DOTALL)
_TRANSFORMED = re.compile(r"\s*(?:- ?[a-z]|\|[xynkmt]\||\\sqrt ?\{?[a-z]\}?)\s*")
_POINT = re.compile(r"(?:[A-Z]|\\text\{[A-Za-z ]+\})\s*(\([^()]*,[^()]*\))")


def without_names(one: str, other: str) -> tuple[str, str]:
    """`x = 5` for 5, and the other way round; two equations keep their names, unless these are the same."""
    one, other = _forward(one), _forward(other)
    named, expected = _single(one), _single(other)
    if named and expected and _same_name(named[1], expected[1]):
        return named[2], expected[2]
    if "=" in one and "=" in other and not any(match and match[1][0] == "(" for match in (named, expected)):
        return one, other
    if named and expected and named[1][0] == expected[1][0] == "(" and sorted(named[1]) == sorted(expected[1]):
        return one, other  # (y, x) for (x, y)
    return named[2] if named else one, expected[2] if expected else other


def without_point(text: str) -> str:
    """`A(1, 2)`, the point A, as `(1, 2)`."""
    match = _POINT.fullmatch(text)
    return match[1] if match else text


def without_parameter(text: str) -> tuple[str, str]:
    """A tidied text without `, n \\in \\mathbb{Z}`, and the letter of that integer; empty where it names none."""
    match = _PARAMETER.fullmatch(text)
    return (match[1].strip(), match[2]) if match else (text, "")


def with_the_same_multiple(text: str, other: str) -> str:
    """`\\frac{\\pi}{2} + n\\pi` with the other's letter for an integer, where both have one multiple of pi."""
    letters = (
        [{first or last for first, last in _MULTIPLE.findall(one)} for one in (text, other)]
        if "\\pi" in text and "\\pi" in other
        else []
    )
    if len(letters) < 2 or any(len(found) != 1 for found in letters) or letters[0] == letters[1]:
        return text
    return renamed(text, letters[0].pop(), letters[1].pop())


def renamed(text: str, letter: str, other: str) -> str:
    """A tidied text with another letter for this one, unless it holds that already."""
    tokens = _TOKEN.findall(text)
    return text if other in tokens else "".join(other if token == letter else token for token in tokens)


def is_equation(text: str) -> bool:
    """Whether a tidied text says something of a number rather than naming it: `2x = 10`, but not `m + n = 10`."""
    left, sign, _ = text.partition("=")
    if not sign or left[-1:] in ("<", ">", "!") or _COMPUTED.match(left):
        return False
    left = _ARGUMENTS.sub("", left)
    if _TRANSFORMED.fullmatch(left):
        return True
    return (
        any(char.isdigit() or char == "^" for char in left)
        and re.search(r"[A-Za-z]", _COMMANDS.sub("", left)) is not None
    )


def result(text: str) -> str:
    """What a tidied integral, sum or limit is said to be, and what holds for all x; any other text as it is."""
    arrow = _IMPLIES.match(text) if "=" in text else None
    text = text[arrow.end() :] if arrow else text
    if "for" in text:
        text = _FOR_ALL.sub("", text) or text
    return text.rpartition("=")[2].strip() if _COMPUTED.match(text) and "=" in _INDEX.sub("", text) else text


def unknown(found: Group) -> str:
    """The one letter that solutions are named by, as in `x = 1, x = 2`; empty where there is none, or several."""
    names = {match[1].partition("_")[0].strip() for item in found.items if (match := _NAMED.fullmatch(item))}
    return names.pop() if len(names) == 1 and not found.brackets else ""


def solutions(found: Group) -> Group:
    """The set of values of one unknown, without its name: `x = 1, 2` and `x_1 = 1, x_2 = 2`."""
    if found.brackets:
        return found
    first, *rest = [_NAMED.fullmatch(item) for item in found.items]
    if first is None:
        return found
    if not any("=" in item for item in found.items[1:]):
        return found._replace(items=(first[2], *found.items[1:]), brackets="{}")
    names = [match[1].partition("_")[0].strip() for match in (first, *rest) if match]
    if len(names) < len(found.items) or len(set(names)) > 1:
        return found
    return found._replace(items=tuple(match[2] for match in (first, *rest) if match), brackets="{}")


def spread(text: str) -> str:
    """`x = y = 1` as `x = 1, y = 1`; any other text as it is."""
    match = _SEVERAL.fullmatch(text)
    return ", ".join(f"{name.strip()} = {match[2]}" for name in match[1].split("=")) if match else text


def coordinates(found: Group, ordered: bool = True) -> Group | None:
    """The point that named values are; None for anything else.

    Args:
        found: such as `y = 2, x = 1`.
        ordered: whether its coordinates have the alphabetical order of their names, or that in which they stand.
    """
    matches = [_NAMED.fullmatch(item) for item in found.items]
    pairs = [(squeeze(match[1]), match[2]) for match in matches if match]
    if found.brackets or len(pairs) < len(found.items) or len({name for name, _ in pairs}) < len(pairs):
        return None
    return Group("()", tuple(value for _, value in (sorted(pairs) if ordered else pairs)))


def _single(text: str) -> re.Match[str] | None:
    """A name and its value; None where it has several values, which `solutions` reads."""
    match = _NAMED.fullmatch(text)
    several = group(match[2]) if match and match[1][0] != "(" else None
    return None if several is not None and not several.brackets else match


def _same_name(one: str, other: str) -> bool:
    """Whether two names are the same; y and f(x) are."""
    names = {squeeze(one), squeeze(other)}
    return len(names) == 1 or names == {"y", "f(x)"}


def _forward(text: str) -> str:
    """`5 = x` as `x = 5`."""
    match = _REVERSED.fullmatch(text)
    return f"{match[2]} = {match[1].strip()}" if match else text
