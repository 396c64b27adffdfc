"""Read the contents of the last boxes of a text: `\\boxed{…}`."""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardstack_verifier.bounds import MAX_ANSWER, MAX_ITEMS
from rewardstack_verifier.extraction.denials import is_denied_before
from rewardstack_verifier.extraction.expressions import UNIT_AFTER, clean_unit, last_aligned_line

MAX_CONTENT = 20 * MAX_ANSWER
"""Maximum characters of a box's content; the rest is cut off.

An answer longer than `MAX_ANSWER` is not parsed, but it is still compared as text.
"""

MAX_BOXES = 8
"""Maximum number of boxes that one search for the last box examines; it skips unclosed, empty and placeholder boxes."""

MAX_BETWEEN = 80
"""Maximum characters between two boxes that are joined into one list."""

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_DELIMITERS = re.compile(r"\\\\|\([a-e]\)|\$|\\[()\[\],;:! ]|\\q?quad|\\text|[{}\s]")
"""Text between two boxes that is ignored: delimiters of formulas, spaces and labels such as `(a)`."""
_CONCLUDING = r"(?: +(?!other|second)[A-Za-z]+){0,4} +(?:answer|so|thus|hence|therefore|finally|total)\b"
"""Words after "and" that announce another result rather than a further part of the same result."""
_JOINT = re.compile(
    r"\s*(?:[,;]|(?P<words>(?:[A-Za-z()]+ +){0,5}?(?:, *)?(?:and|or)\b"
    rf"(?!{_CONCLUDING})(?: +[A-Za-z]+){{0,4}})|(?P<sign>[/|-]))?"
    r"\s*(?:(?P<name>[A-Za-z]\w{0,3}) *=)?\s*"
)
"""Text that joins two boxes: a comma, words with "and" or "or", a sign, or nothing; then perhaps `x =`."""
_FIRST_NAME = re.compile(r"(?:\A|[$,;:(\n]|\\[(\[]|[a-z]{2,} )\s*(?P<name>[A-Za-z]\w{0,3})\s*=[\s$]*\Z")
"""A name and an equals sign before the first of several joined boxes, which has no `_JOINT` before it."""
_SIGN_BEFORE = re.compile(r"(?:[=($]|\\\[)\s*([-\u2212])\s*\Z")
"""A minus sign that is before a box and belongs to the answer."""
_SEVERAL_BEFORE = re.compile(
    r"(?:\b(?:solutions|roots|zeros|zeroes|eigenvalues|divisors)\b[^.\n\d]{0,40}?(?:are|:)"
    r"|(?<![\w,)}] )(?<![\w,)}\\])[a-z]\s*(?:=|\\in))"
    r"[\s$({\\\[]{0,6}\Z"
)
"""Text before a box whose values may be in any order: "the solutions are", "x ="."""
_IN_BRACKETS = re.compile(r"[()\[\]=|]|\\(?:[{}]|in(?![a-z])|begin|[lr]angle)")
_COMMA = re.compile(r"(?<![\d\\{]),|(?<![\\{]),(?!(?:\\[!, ]\s?)*\d{3}(?!\d))")
_SUFFIX = re.compile(
    rf"\s*(?P<factor>\\?%|\\pi(?![A-Za-z])|\\sqrt\{{[^{{}}]{{1,20}}\}}|\\(?:times|cdot)\s?10\^\{{?-?\d{{1,3}}\}}?|\^\{{?\d{{1,3}}\}}?"
    rf"|\b(?:thousand|million|billion)\b)|{UNIT_AFTER}"
)
_OPERAND = (
    r"(?:[A-Za-z](?![A-Za-z])|\\(?:pi|theta|alpha|beta|infty|[dt]?frac|sqrt|ln|log|sin|cos|tan|exp|left|right|cdot|times|div|pm)"
    r"(?![A-Za-z])|[-+*/^_!()|{}\d]|\.(?=\d)|\\[,;:! ]|\s)"
)
"""A pattern for a token in the rest of a formula after a box."""
_CONTINUATION = re.compile(
    rf"\s*(?P<tail>(?![\s\d{{}}]|\\[;: ]){_OPERAND}{{1,80}}?)\s*(?=\$|\\[)\]]|[,=;]|\.(?:\s|\$|\\|\Z)|\Z)"
)
"""The rest of a formula after a box: `+ C`."""
_INCOMPLETE = re.compile(
    r".*(?:[-+*/^_]|\\(?:cdot|times|div|pm|frac|sqrt))|.*[-+*/^_]\s*[)}].*|(?:\\[,!]|\s)+(?:\\left)?\(.*"
    r"|(?:\\left)?\((?:[A-Za-z/{}\s]|\\[dt]?frac)*(?:\\right)?\)",
    re.DOTALL,
)
"""The rest of a formula that is not read: it lacks an operand, or is in parentheses after a space or around a unit."""
_OPENED = re.compile(r"(?<!\\)\$\$?|\\[\[(\])]")
"""A delimiter of a formula."""
MAX_FORMULA = 400
"""Maximum characters before a box to search for the delimiter of its formula."""
_RELATION_BEFORE = re.compile(r"(?:\$|\\[(\[])\s*(?P<relation>[A-Za-z]\s*(?:\\neq?(?![A-Za-z])|\u2260))\s*\Z")
"""A letter and "not equal" between the beginning of a formula and a box: `x \\ne `."""
_NO_VALUE = re.compile(r"\(?[A-J]\)?|.*(?:,|\\text|\\mathrm|\\begin).*", re.DOTALL)
"""Content that is never joined to the formula after its box: the letter of an option, a list, or words."""
_LABEL = re.compile(r"\\text(?:bf|rm|it)?\{\s{0,3}(?P<name>[^\W\d_][\w ]{1,30}):\s{0,3}\}\s{0,3}(?=[^\s:][^:]*\Z)")
"""A label before the only value of a box: `\\text{Vertex: }`."""
_VARIABLE = re.compile(r"[A-Za-z](?:_?\w)?")
_SIMPLE, _OPERATOR = re.compile(r"[\w.]+"), re.compile(r"[-+\u2212*/^]")
_PLACEHOLDER = re.compile(
    r"(?:\\text\{)?\s*(?:(?:your |the )?(?:final )?answer(?: here)?|\.\.\.|\\l?dots|…)\s*\}?", re.IGNORECASE
)
_WITHOUT_BRACES = re.compile(r"\s*([-+]?\d(?:[\d.,/]*\d)?)")


class Box(NamedTuple):
    """A box: the start of its command, the end of its braces, and its content."""

    start: int
    end: int
    content: str


def extract_boxed(text: str) -> str | None:
    """Return the content of the last closed `\\boxed{…}` or `\\fbox{…}`, and of the boxes that are joined to it.

    The result is None if there is no such box, or if the only one is denied.
    """
    box = find_last_box(text, len(text))
    return None if box is None else read_box_content(text, box)


def read_box_content(text: str, box: Box) -> str | None:
    """Return the content of the last box of a text; if other boxes are joined to it, a list of their contents.

    Boxes are joined if a comma, "and", "or" or a sign such as `/` is between them, or if they are side by side with
    different contents. If the last box is denied ("not \\boxed{5}"), the box before it is used.

    Args:
        text: the text.
        box: its last box.

    Returns:
        The content; None if the only box is denied.
    """
    last, before = _find_outermost(text, box)
    if is_denied_before(text, last.start):
        if before is None:
            return None
        last, before = _find_outermost(text, before)
    box = last
    contents: list[str] = []
    names: list[str] = []
    separator = ", "
    for _ in range(MAX_ITEMS + 1):
        contents.append(box.content)
        separator_match = None if before is None else _match_joint(text, before, box)
        names.append(_name_of(text, box, separator_match))
        if before is None or separator_match is None:
            break
        if not separator_match.group().strip() and before.content == box.content:
            contents.pop()
            names.pop()
        if separator_match["words"]:
            separator = " and "
        if separator_match["sign"] or "or" in (separator_match["words"] or "").split():
            separator = " or "
        box, before = before, find_last_box(text, before.start)
    if len(contents) == 1:
        return _with_surroundings(text, last)
    return separator.join(reversed(_with_names(contents, names) if separator != " or " else contents))


def _name_of(text: str, box: Box, joint: re.Match[str] | None) -> str:
    """Return the name before a box, `x` in `x = \\boxed{3}`; empty if there is none."""
    named = joint or _FIRST_NAME.search(text, max(0, box.start - MAX_BETWEEN), box.start)
    return (named["name"] or "") if named else ""


def _with_names(contents: list[str], names: list[str]) -> list[str]:
    """Return the contents of boxes as equations if all names (`x`, `x_1`, `x2`) are different, else unchanged."""
    if len({*filter(_VARIABLE.fullmatch, names)}) < len(contents) or any("=" in content for content in contents):
        return contents
    return [f"{name} = {content}" for name, content in zip(names, contents, strict=True)]


def _with_surroundings(text: str, box: Box) -> str:
    """Return the content of a box with the sign before it, and the rest of its formula or the unit after it."""
    label = _LABEL.match(box.content)
    is_label = label is not None and not is_denied_before(box.content, label.end("name"))
    content = box.content[label.end() :] if label is not None and is_label else box.content
    relation = _RELATION_BEFORE.search(text, max(0, box.start - 16), box.start)
    sign = _SIGN_BEFORE.search(text, max(0, box.start - 8), box.start)
    if sign is not None and not content.startswith(("-", "\u2212")):
        content = f"-{content}" if content[:1].isdigit() else f"-({content})"
    if relation is not None:
        content = f"{relation['relation']} {content}"
    if _is_continued(content):
        content = last_aligned_line(content) or content
    is_list = "," in content and not _IN_BRACKETS.search(content)
    if is_list and _SEVERAL_BEFORE.search(text, max(0, box.start - 80), box.start):
        content = _COMMA.sub(" \\\\text{ and } ", content)
    return _with_suffix(content, text, box)


def _with_suffix(content: str, text: str, box: Box) -> str:
    """Return the content of a box with the unit, the rest of the formula, the percent sign or the factor after it."""
    suffix = _SUFFIX.match(text, box.end)
    if suffix is not None and not suffix["factor"]:
        return f"{content} \\text{{ {clean_unit(suffix)}}}"
    continuation = _CONTINUATION.match(text, box.end)
    is_value = continuation is not None and not _NO_VALUE.fullmatch(content) and _is_in_formula(text, box.start)
    if continuation is None or not is_value or not _is_complete(text[box.end : continuation.end()]):
        return content if suffix is None else f"{content} {suffix['factor']}"
    tail = continuation["tail"]
    is_term = tail.startswith(("+", "-")) or "=" in content or not _OPERATOR.search(content)
    is_operand = _SIMPLE.fullmatch(content) or (is_term and tail[0] not in "^!")
    return f"{content} {tail}" if is_operand else f"({content}) {tail}"


def _is_complete(formula: str) -> bool:
    """Return whether the rest of a formula has all its brackets and operands, and is no remark in parentheses."""
    pairs = all(formula.count(one) == formula.count(other) for one, other in ("()", "{}"))
    is_balanced = pairs and formula.count("|") % 2 == 0
    return is_balanced and not _INCOMPLETE.fullmatch(formula.rstrip())


def _is_in_formula(text: str, position: int) -> bool:
    """Return whether a position is between the delimiters of a formula, `$` or `\\[`, in its paragraph."""
    start = max(text.rfind("\n\n", 0, position) + 1, position - MAX_FORMULA, 0)
    delimiters = [match.group() for match in _OPENED.finditer(text, start, position)]
    if not delimiters or delimiters[-1] in ("\\[", "\\("):
        return bool(delimiters)
    return delimiters[-1].startswith("$") and delimiters.count(delimiters[-1]) % 2 == 1


def _is_continued(content: str) -> bool:
    """Return whether aligned lines are one equation: each line after the first begins with `=`."""
    _, *rows = content.split("\\\\")
    return content.startswith("\\begin{") and bool(rows) and all(row.lstrip(" &\n").startswith("=") for row in rows)


def find_last_box(text: str, end: int) -> Box | None:
    """Return the last closed box that starts before `end`; empty boxes and placeholders ("answer here") are skipped."""
    for _ in range(MAX_BOXES):
        plain, framed = text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end)
        start = max(plain, framed)
        if start < 0:
            return None
        content_after = _read_content(text, start + len("\\boxed" if plain > framed else "\\fbox"))
        if content_after is not None and content_after[1].strip() and not _PLACEHOLDER.fullmatch(content_after[1]):
            return Box(start, content_after[0], content_after[1].strip())
        end = start
    return None


def _find_outermost(text: str, box: Box) -> tuple[Box, Box | None]:
    """Return the box around `box`, and the last box before this outer box (None if there is none).

    If no box is around `box`, the first result is `box` itself. An inner `\\boxed` is removed: the content of
    `\\boxed{\\boxed{6} + 1}` is `6 + 1`.
    """
    before = find_last_box(text, box.start)
    if before is None or before.end < box.end:
        return box, before
    inner = text[box.start : box.end]
    return before._replace(content=before.content.replace(inner, box.content)), find_last_box(text, before.start)


def _match_joint(text: str, before: Box, box: Box) -> re.Match[str] | None:
    """Return a match of the text that joins two boxes; None if they are not joined, or one is inside the other."""
    between = text[before.end : box.start]
    if before.end > box.start or len(between) > MAX_BETWEEN or "\n\n" in between:
        return None
    return _JOINT.fullmatch(_DELIMITERS.sub(" ", between))


def _read_content(text: str, start: int) -> tuple[int, str] | None:
    """Return the end and the content of the braces, or of the number without braces, at `start`.

    Content beyond `MAX_CONTENT` is cut off. The result is None if there are neither braces nor a number, or if the
    braces are not closed.
    """
    number = _WITHOUT_BRACES.match(text, start)
    if number is not None:
        return number.end(), number[1]
    while text[start : start + 1].isspace():
        start += 1
    return read_braces(text, start) if text[start : start + 1] == "{" else None


def read_braces(text: str, start: int) -> tuple[int, str] | None:
    """Return the end and the content of the braces that open at `start`; None if they are not closed.

    Content beyond `MAX_CONTENT` is cut off.
    """
    depth = 0
    stop = min(len(text), start + MAX_CONTENT)
    for match in _BRACE.finditer(text, start, stop):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.end(), text[start + 1 : match.start()]
    return (stop, text[start + 1 : stop]) if stop < len(text) else None
