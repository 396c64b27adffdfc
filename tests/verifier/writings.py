"""Ways to write an answer that leave its meaning as it is: `WRITINGS`, by name."""

from __future__ import annotations

import re
from collections.abc import Callable

Write = Callable[[str], str]

_SIGNS = {"times": "\u00d7", "cdot": "·", "pi": "π", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "ne": "≠"}
_CLOSED = {")": "(", "]": "["}
_ENDING = (".", "dots", "…", "。")


def _around(before: str, behind: str, without: str = "") -> Write:
    """Puts a text between two others, unless it holds what does not go between them."""
    return lambda text: text if without and without in text else f"{before}{text}{behind}"


def _in_environment(name: str) -> Write:
    """Puts a text of one line into an environment."""
    opening, closing = f"\\begin{{{name}}} ", f" \\end{{{name}}}"
    return lambda text: text if "\\begin" in text or "&" in text or "\\\\" in text else f"{opening}{text}{closing}"


def _with_sized_brackets(text: str) -> str:
    opened: list[str] = []
    for bracket in re.findall(r"(?<!\\)[()\[\]]", text):
        if bracket in _CLOSED.values():
            opened.append(bracket)
        elif not opened or opened.pop() != _CLOSED[bracket]:
            return text
    if opened or "\\left" in text:
        return text
    return re.sub(r"(?<!\\)([()\[\]])", lambda one: ("\\left" if one[1] in "([" else "\\right") + one[1], text)


def _with_full_stop(text: str) -> str:
    return text if text.rstrip("}) ").endswith(_ENDING) else f"{text}."


def _in_unicode(text: str) -> str:
    return re.sub(r"\\([a-z]+)", lambda one: _SIGNS.get(one[1], one[0]), text)


WRITINGS: dict[str, Write] = {
    "bold": _around("\\mathbf{", "}"),
    "a bold symbol": _around("\\boldsymbol{", "}"),
    "bm": _around("\\bm{", "}"),
    "a colour": _around("{\\color{blue} ", "}"),
    "a colour as a command": _around("\\textcolor{red}{", "}"),
    "a coloured box": _around("\\colorbox{yellow}{", "}"),
    "braces": _around("{", "}", without="∅"),
    "two pairs of braces": _around("{{", "}}", without="∅"),
    "an underline": _around("\\underline{", "}"),
    "a box": _around("\\boxed{", "}"),
    "ensured mathematics": _around("\\ensuremath{", "}"),
    "empty groups": _around("\\mathopen{}", "\\mathclose{}"),
    "thin spaces": _around("\\,", "\\,"),
    "thick spaces": _around("\\;", "\\;"),
    "a negative space": _around("\\!", ""),
    "wide spaces": _around("\\quad ", "\\qquad"),
    "spaces by length": _around("\\hspace{1em}", "\\hspace*{2mm}"),
    "ties": _around("~", "~"),
    "dollars": _around("$", "$", without="$"),
    "two dollars": _around("$$ ", " $$", without="$"),
    "parentheses of LaTeX": _around("\\( ", " \\)"),
    "a displayed formula": _around("\\[ ", " \\]"),
    "display style": _around("\\displaystyle ", ""),
    "large": _around("{\\large ", "}"),
    "larger": _around("\\Large ", ""),
    "something hidden": _around("", "\\phantom{9}"),
    "a tag": _around("", " \\tag{1}"),
    "a label": _around("", "\\label{eq:1}"),
    "bold as Markdown has it": _around("**", "**", without="**"),
    "line breaks": _around("\n", "\n"),
    "characters of no width": _around("\u200b", "\ufeff"),
    "an aligned row": _in_environment("aligned"),
    "a gathered row": _in_environment("gathered"),
    "a full stop": _with_full_stop,
    "brackets that grow": _with_sized_brackets,
    "displayed fractions": lambda text: re.sub(r"\\[dt]?frac(?![a-z])", r"\\dfrac", text),
    "small fractions": lambda text: re.sub(r"\\[dt]?frac(?![a-z])", r"\\tfrac", text),
    "entities of HTML": lambda text: text if "&" in text else text.replace("<", "&lt;").replace(">", "&gt;"),
    "signs of Unicode": _in_unicode,
    "full-width digits": lambda text: text.translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
    "the typographic minus sign": lambda text: text.replace("-", "\u2212"),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
}
