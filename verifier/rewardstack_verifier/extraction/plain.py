"""Formulas that stand in a sentence without delimiters, "the area is 36π", between dollars: `marked`."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u04ff"
"""Letters of which words are made."""
_TOKEN = re.compile(
    r"(?P<number>\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|\.\d+)"
    r"|(?P<absolute>\|[^|\n]{1,30}\|)"
    r"|(?P<constant>[π√∛∞½⅓⅔¼¾∅])"
    rf"|(?P<name>(?:arc)?(?:sin|cos|tan|cot|sec|csc)|ln|log|exp|sqrt|gcd|lcm|GCD|HCF|LCM)(?![{_WORD}])"
    rf"|(?P<letter>(?<![{_WORD}])(?:(?:xy|xz|yz|ab|bc|ac|mn|pq|rt|[abckmn]x)(?![{_WORD}])"
    rf"|[A-Za-z\u0391-\u03a9\u03b1-\u03c9\u211d\u2124\u2115](?:(?:[₀-₉]+|_\{{?\w\}}?|(?<=C)[1-9](?!\w))'{{0,2}}|'{{0,2}}(?![{_WORD}]))))"
    r"|(?P<behind>[⁰¹²³⁴-⁹⁺⁻ⁿ]+|[!°\u2032″])"
    r"|(?P<opening>[(\[{⟨])|(?P<closing>[)\]}⟩])"
    r"|(?P<operator>[-+\u2212*/\u2044\u2215·\u00d7÷^=<>≤≥≠±∓\u222a∩∈])"
    r"|(?P<joint>(?:or|and)(?=\s))"
    r"|(?P<separator>[,;|](?=\s?[-\u2212+\w√π∞(\[]))"
)
_SET = re.compile(r"(?<![\^_\\])\{([^{}]*)\}")
_OUTWARDS = re.compile(r"\][^\[\]\n]{1,40}[;,][^\[\]\n]{1,40}[\[\]]|\[[^\[\]\n]{1,40}[;,][^\[\]\n]{1,40}\[")
"""An interval whose brackets are turned outwards."""
_UNIT = re.compile(r"[A-Za-z][²³]|[A-Za-z][²³]?(?:\^[23])?(?:[/·*][A-Za-z](?:[²³]|\^-?[23])?)+")
_NUMBER_BEFORE = re.compile(r"\d\s?\Z")
_SPACE = re.compile(r"[ \t\u00a0]?")
_CLOSING = {"(": ")", "[": "]", "{": "}", "⟨": "⟩"}
_ALSO_CLOSING = {"(": "]", "[": ")"}
_WEAK = ("operator", "separator", "joint")
_VALUES = ("number", "letter", "behind", "closing")
_DELIMITERS = ("$", "\\", "`", "http")
_NO_VALUE: tuple[list[str], ...] = ([], ["letter"])
MOST = 2_000
"""Characters of a sentence in which formulas are looked for."""


class _Piece(NamedTuple):
    kind: str
    start: int
    end: int
    spaced: bool


def marked(sentence: str) -> str:
    """A sentence with its formulas between dollars, where it ends with one; as it is where any are marked already.

    Formulas are runs of numbers, single letters, brackets and signs. A plain number is none, and what a sentence says
    where it stands behind the last formula.

    Args:
        sentence: of a response.
    """
    if len(sentence) > MOST or any(sign in sentence for sign in _DELIMITERS):
        return sentence
    outwards = _OUTWARDS.search(sentence)
    if outwards is not None:
        return f"{sentence[: outwards.start()]}${outwards[0]}${sentence[outwards.end() :]}"
    runs = [part for run in _runs(sentence) for part in _split(run)]
    trimmed = [run for run in (_trimmed(run, sentence) for run in runs) if [one.kind for one in run] not in _NO_VALUE]
    formulas = [run for run in trimmed if not _is_unit(run, sentence)]
    if not formulas or not _is_formula(formulas[-1], sentence):
        return sentence
    for run in reversed(formulas):
        if _is_formula(run, sentence):
            start, end = run[0].start, run[-1].end
            sentence = f"{sentence[:start]}${_with_sets(sentence[start:end])}${sentence[end:]}"
    return sentence


def _is_unit(run: list[_Piece], sentence: str) -> bool:
    """Whether a run is the unit of the number before it: `9.8 m/s`."""
    start, end = run[0].start, run[-1].end
    return (
        _UNIT.fullmatch(sentence, start, end) is not None
        and _NUMBER_BEFORE.search(sentence[max(0, start - 3) : start]) is not None
    )


def _runs(sentence: str) -> list[list[_Piece]]:
    """Tokens of formulas that follow one another, with a space between them at most."""
    runs: list[list[_Piece]] = []
    at, run, depth = 0, list[_Piece](), 0
    while at < len(sentence):
        space = _SPACE.match(sentence, at)
        start = space.end() if space and run else at
        match = _TOKEN.match(sentence, start)
        kind = match.lastgroup or "" if match else ""
        if match is None or (kind in ("separator", "closing", "joint") and not depth) or (kind == "behind" and not run):
            runs += [run] if run else []
            at, run, depth = max(start, at + (not run)), [], 0
            continue
        depth += {"opening": 1, "closing": -1}.get(kind, 0)
        run.append(_Piece(kind, start, match.end(), start > at))
        at = match.end()
    return [*runs, run] if run else runs


def _split(run: list[_Piece]) -> list[list[_Piece]]:
    """A run in parts, each of which a space sets apart from the value before it."""
    parts: list[list[_Piece]] = [[]]
    depth = 0
    for before, piece in zip([None, *run], run, strict=False):
        depth += {"opening": 1, "closing": -1}.get(piece.kind, 0)
        if before is not None and not depth - (piece.kind == "opening") and _parts(parts[-1], piece):
            parts.append([])
        parts[-1].append(piece)
    return parts


def _trimmed(run: list[_Piece], sentence: str) -> list[_Piece]:
    """A run without words of one letter at its ends; nothing where it is no whole formula."""
    while run and _is_word(run, len(run) - 1):
        run = run[:-1]
    while run and _is_word(run, 0):
        run = run[1:]
    signed = len(run) > 1 and sentence[run[0].start] in "-\u2212+±" and not run[1].spaced
    whole = run and run[-1].kind not in (*_WEAK, "opening", "name") and (signed or run[0].kind not in _WEAK)
    return run if whole and _is_balanced(sentence, run) else []


def _parts(run: list[_Piece], other: _Piece) -> bool:
    """Whether a value with a space before it belongs to another formula than those before it."""
    one = run[-1]
    if one.kind in ("number", "closing") and other.kind == "name":
        return False  # a factor: `(1/2) ln 3`
    if one.kind == "letter" and other.kind in ("name", "letter"):
        subscripted, added = one.end > one.start + 1, len(run) > 1 and run[-2].kind == "operator"
        if subscripted or (added and other.kind == "name"):
            return False  # likewise: `C_1 e^x`, `1 - x cos(x)`
    return other.spaced and one.kind in _VALUES and other.kind in ("number", "letter", "name", "opening")


def _is_word(run: list[_Piece], at: int) -> bool:
    """Whether a letter stands by itself, as "a" does."""
    if run[at].kind != "letter":
        return False
    before, behind = run[at - 1] if at else None, run[at + 1] if at + 1 < len(run) else None
    joined = (before is not None and (not run[at].spaced or before.kind in _WEAK)) or (
        behind is not None and (not behind.spaced or behind.kind in _WEAK)
    )
    return not joined


def _is_balanced(sentence: str, run: list[_Piece]) -> bool:
    opened: list[str] = []
    for piece in run:
        sign = sentence[piece.start]
        if piece.kind == "opening":
            opened.append(sign)
        elif piece.kind == "closing":
            before = opened.pop() if opened else ""
            if sign not in (_CLOSING.get(before), _ALSO_CLOSING.get(before)):
                return False
    return not opened


def _is_formula(run: list[_Piece], sentence: str) -> bool:
    """Whether a run is more than a number, which may be signed, in parentheses, divided or of degrees, or a letter."""
    kinds = [piece.kind for piece in run if piece.kind not in ("opening", "closing")]
    if kinds[:1] == ["operator"]:
        kinds = kinds[1:]
    if kinds[:2] == ["number", "operator"] and sentence[run[1].start] == "=":
        return False  # of what comes before: `75% of 40 = 30`
    plain = kinds == ["number", "operator", "number"] and any(sentence[one.start] in "/-\u2212" for one in run)
    return bool(kinds) and not plain and kinds not in (["number"], ["letter"], ["number", "behind"], ["name"])


def _with_sets(formula: str) -> str:
    """A formula whose braces are those of sets, other than those of an exponent or a subscript."""
    return _SET.sub(r"\\{\1\\}", formula)
