"""Split the text of an answer into tokens; drop or unify notation without meaning, such as fonts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple, TypeVar

from rewardstack_verifier.lexicon.units import PREFIXES
from rewardstack_verifier.reading.characters import MARKS_ON_LETTERS, replace_characters
from rewardstack_verifier.reading.commands import (
    ALIASES,
    COLORED,
    DEGREES,
    DROPPED,
    HIDDEN,
    LETTER_COMMANDS,
    SPACES,
    TEXT,
    UNWRAPPED,
)
from rewardstack_verifier.reading.names import DECORATIONS, SYSTEMS
from rewardstack_verifier.stack import with_fresh_stack

T = TypeVar("T")
NUMBER, LETTERS, COMMAND, MARK, BEGIN, END = "number", "letters", "command", "mark", "begin", "end"
"""Kinds of tokens. `begin` and `end` are the commands around an environment.

The text of a mark is a single character, or `\\{`, `\\}`, `\\_` or `\\\\`.
"""

_SEPARATOR = (
    r"(?:[,']|[ ]?\{[ ]?,[ ]?\}[ ]?|\\text\{,\}|(?:\\!){0,2},?(?:\\[,! ]\s?){1,2}|(?<!\.\d)[ ~](?!\d{3}\s?/\s?\d))"
)
"""A pattern for separators between thousands."""
_UNGROUPED = r"(?:,\d{3})*,(?:\d{1,2}(?!\d)|\d{4})"
"""Text after `1,100`, if it shows that the comma separates the numbers of a list, not thousands: `,20`."""
_CHINESE = "\u3040-\u30ff\u3400-\u9fff"
"""Chinese and Japanese characters, which may stand beside a Latin letter without a space: `或x`."""
_TOKEN = re.compile(
    r"(?P<space>(?:\s|~|\\ )+)"
    rf"|(?P<number>(?<!\d,)[1-9]\d{{0,2}}(?:{_SEPARATOR}\d{{3}}(?!\d))+(?!(?<=,\d{{3}}){_UNGROUPED})(?:\.\d+)?"
    r"|(?:0\{,\}\d+|\d+\{,\}(?:\d{1,2}|\d{4,}))(?!\d)"
    r"|[1-9]\d{0,2}(?:\.\d{3}){2,}(?!\d)|\d+\.(?=\\(?:overline|bar|dot)(?![a-z]))|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3}(?!\d))?|\.\d+)"
    r"|\\begin\s*\{(?P<begin>[a-z]*)\*?\}"
    r"|\\end\s*\{(?P<end>[a-z]*)\*?\}"
    r"|\\(?P<command>q?quad|(?:operatorname|hspace|vspace|tag)\*|[A-Za-z]+|[,;:!>/ ])"
    r"|(?P<mark>\\\\(?:\s?\[-?[\d.]{1,6}\s?[a-z]{2}\])?|\\[{}$%&#_|]|\$\$?|\\[()\[\]]|<=|>=|!=|==|=>|->|\*\*)"
    rf"|(?P<letters>[{_CHINESE}]+|[^\W\d_](?:(?![{_CHINESE}])[^\W\d_]|{MARKS_ON_LETTERS})*)"
    r"|(?P<character>.)",
    re.DOTALL,
)
_DELIMITERS = frozenset(("$", "$$", "\\(", "\\)", "\\[", "\\]"))
"""Delimiters of formulas, which are dropped."""
_ASCII_OPERATORS = {"<=": "le", ">=": "ge", "!=": "ne", "->": "to", "=>": "implies"}
"""Operators in ASCII, and the LaTeX command with the same meaning."""
_MARKS = _ASCII_OPERATORS | {"==": "=", "**": "^", "\\|": "|"} | {f"\\{sign}": sign for sign in "$%&#"}
"""Text of the token for each sign that is renamed."""
_THOUSANDS = re.compile(rf"{_SEPARATOR}(?=\d{{3}})")
MAX_RAISED = 16
"""Maximum number of tokens of an exponent or subscript; longer ones are not reordered."""
_DECIMAL_COMMA = re.compile(r"0\{,\}\d+|\d+\{,\}(?:\d{1,2}|\d{4,})")
"""A number with a decimal comma in braces: `3{,}5`. Before three digits, the comma is decimal only after a `0`."""
_DOLLAR = re.compile(r"(?<!\\)\$")
_ENDING = "(?:st|nd|rd|th)"
_ORDINAL = re.compile(
    rf"(?<=\d)\s?(?:\^?\{{\\(?:text|mathrm)\{{{_ENDING}\}}\}}|\^\{{{_ENDING}\}}|\^?\\(?:text|mathrm)\{{{_ENDING}\}}"
    rf"|{_ENDING}(?![A-Za-z]))"
)
"""The ending of an ordinal such as `3rd`, which is removed."""
_TIMES = re.compile(r"(?<=\d) [xX] (?=10 ?\^)")
"""The letter x for multiplication before a power of ten."""
_TIMES_BETWEEN = re.compile(r"(?<=[\d)]) [xX] (?=\.?\d)|(?<=[1-9])[xX](?=[1-9])|(?<=\d0)[xX](?=[1-9])")
"""The letter x for multiplication between numbers: `10 x 120`, `3x4`, but not the hexadecimal `0x10`."""
_LETTER_BEFORE_EQUALS = r"(?=[A-Za-z](?:_\w)?\s*=)"
_EQUATION_GAP = re.compile(
    rf"(?<=[\d}})])\s*\\q?quad\s*{_LETTER_BEFORE_EQUALS}"
    rf"|(?<==)(?P<value>\s*-?\d[\d.]*)(?:\s|~|\\[,;: ])+{_LETTER_BEFORE_EQUALS}"
)
"""Space that separates two equations: `x = 2 \\quad y = 3`."""
_LETTER_X = re.compile(r"(?<![A-Za-z])[xX](?![A-Za-z])")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_DOUBLED = re.compile(r"\\\\(?=(?:[dt]?frac|sqrt|text|pi|infty|left|right|cdot|times|circ|pm|leq?|geq?|in|cup)\b)")
"""The doubled backslash of a command, as in a string literal: `\\\\frac`."""
_TAKES_ARGUMENT = DECORATIONS | {"^", "_", "frac", "sqrt", "binom", "mathbb"}
"""Tokens after which a group in braces is an argument, even if it is empty."""
_ARGUMENT = re.compile(r"\s*\{")
MAX_WRAPPED = 40
"""Maximum number of rounds in which `tokenize` removes an environment or all braces around the whole text."""
_CUT_SPACE = re.compile(r"(?<!\\)\\\s*\Z")
"""A backslash at the end of a text: the rest of a LaTeX space (`\\ `) after the text was stripped."""
_ENTITY = re.compile(r"&(?:lt|gt|le|ge|ne|nbsp|minus|times|middot|pi|radic|deg|infin|#\d{1,5});")
"""An HTML entity."""


_GROUP = r"((?:[^{}]|\{[^{}]*\})*)"
_QUANTITY = re.compile(rf"\\(?:(?:SI|qty)\{{(?P<value>[^{{}}]*)\}}|si|unit)\{{(?P<unit>{_GROUP})\}}")
"""A quantity or unit of the LaTeX package siunitx: `\\SI{5}{m/s}`."""
_PREFIX = re.compile(rf"\\({'|'.join(name for name, _ in PREFIXES.values())})\\")
_FORMULA = re.compile(rf"\\ce\{{{_GROUP}\}}")
"""A formula of chemistry of the LaTeX package mhchem: `\\ce{H2O}`."""
_CHARGE, _COUNT, _ELEMENTS = (
    re.compile(r"\^?(\d*[+-])(?!\S)"),
    re.compile(r"(?<=[A-Za-z)\]])\d+"),
    re.compile(r"[A-Za-z]+"),
)
_ORBITALS = re.compile(r"(?:[1-7][spdf]\^\d{1,2})+")
"""An electron configuration, `1s^22s^22p^6`, whose exponents end before the next number."""


class Token(NamedTuple):
    """A token.

    Args:
        kind: kind of the token, such as `NUMBER`.
        text: text of the token; for a command, its name, with aliases replaced.
        word: whether the token is in upright type, as in `\\text`.
        spaced: whether a space is before the token.
    """

    kind: str
    text: str
    word: bool = False
    spaced: bool = False


_STOP = Token(MARK, ".")


class UnreadableError(Exception):
    """Raised by a reader (a function that parses tokens) if it cannot parse the tokens. Another reader may succeed."""


def parse_first(readers: Iterable[Callable[[list[Token]], T]], tokens: list[Token]) -> T:
    """Return the result of the first reader that can parse the tokens.

    Raises:
        UnreadableError: no reader can parse the tokens.
    """
    for reader in readers:
        with suppress(UnreadableError):
            return reader(tokens)
    raise UnreadableError("not read")


def tokenize(text: str) -> list[Token]:
    """Split an answer into tokens.

    Args:
        text: text of the answer, with or without `$` around it; the caller limits its length.

    Raises:
        UnreadableError: the argument of a command is not closed.
    """
    if "&" in text and ";" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)
    if _DOLLAR.findall(text).count("$") % 2:
        text = _DOLLAR.sub(r"\\$", text)  # an odd number of `$`: amounts of money, not delimiters
    text = _CUT_SPACE.sub("", text)
    if "\\" in text:
        text = _FORMULA.sub(_expand_formula, _QUANTITY.sub(_expand_quantity, text))
    if text.count("=") > 1:
        text = _separate_equations(text)
    text = _replace_letter_x(_ORDINAL.sub("", replace_characters(text)))
    tokens = _Lexer(text).tokens(word=False)
    tokens = _put_subscripts_first(_unwrap_bases(_drop_empty_groups(tokens)))
    for _ in range(MAX_WRAPPED):
        if (layers := _count_outer_braces(tokens)) > 0:
            tokens = tokens[layers : len(tokens) - layers]
        elif _is_one_row(tokens):
            tokens = [token for token in tokens[1:-1] if token.text != "&"]
        else:
            break
    return tokens


def _expand_quantity(match: re.Match[str]) -> str:
    """Return `\\SI{5}{\\metre\\per\\second}` as `5 \\text{ metre per second}`."""
    unit = _PREFIX.sub(r"\1", match["unit"]).replace("\\", " ")
    return f"{match['value'] or ''}\\,\\text{{{unit}}}"


def _expand_formula(match: re.Match[str]) -> str:
    """Return `\\ce{SO4^2-}` as `\\text{SO}_{4}^{2-}`."""
    formula = _COUNT.sub(r"_{\g<0>}", _CHARGE.sub(r"^{\1}", match[1]))
    return _ELEMENTS.sub(r"\\text{\g<0>}", formula)


def _separate_equations(text: str) -> str:
    """Insert a comma between two equations that are separated only by space."""
    return _EQUATION_GAP.sub(lambda space: f"{space['value'] or ''}, ", text)


def _replace_letter_x(text: str) -> str:
    """Replace the letter x by a multiplication sign, before a power of ten and between other numbers.

    If the text also has a variable x, only the letter before a power of ten is replaced.
    """
    text = _TIMES.sub("*", text)
    if "x" not in text and "X" not in text:
        return text
    multiplied = _TIMES_BETWEEN.sub("*", text)
    return text if _LETTER_X.search(_COMMAND.sub("", multiplied)) else multiplied


def is_same_text(one: str, other: str) -> bool:
    """Return whether two texts have the same tokens; False if one of them is unreadable.

    `x_{i}` counts as the same as `x_i`, and `H_2O` as the same as `H2O`.
    """
    try:
        return with_fresh_stack(_same_tokens)(one, other)
    except (UnreadableError, RecursionError):
        return False


def _same_tokens(one: str, other: str) -> bool:
    first, second = (tokens[: len(tokens) - (tokens[-1:] == [_STOP])] for tokens in (tokenize(one), tokenize(other)))
    if [token[:2] for token in first] == [token[:2] for token in second]:
        return True
    texts, others = _simplify_indices(first), _simplify_indices(second)
    return texts == others or ("".join(texts) == "".join(others) and _ORBITALS.fullmatch("".join(texts)) is not None)


def _simplify_indices(tokens: list[Token]) -> list[str]:
    """Return the texts of tokens, with `x_{i}` as `x_i`, and `H_2O` as `H2O`."""
    texts = [token.text for token in tokens]
    for at in range(len(texts) - 2, 0, -1):
        if texts[at - 1] in ("_", "^") and texts[at : at + 3 : 2] == ["{", "}"] and len(texts[at + 1]) == 1:
            del texts[at + 2], texts[at]
    for at in range(len(texts) - 2, 0, -1):
        if texts[at] == "_" and texts[at + 1].isdecimal() and texts[at - 1].isalpha() and texts[at - 1][0].isupper():
            del texts[at]
    return texts


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def tokens(self, word: bool, is_group: bool = False) -> list[Token]:
        """Read tokens to the end of the text.

        Args:
            word: whether the tokens are in upright type.
            is_group: whether to stop after the brace that closes the current group.

        Raises:
            UnreadableError: the group is not closed.
        """
        tokens: list[Token] = []
        depth = 0
        spaced = False
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            assert match is not None  # the last alternative matches any character
            self.at = match.end()
            kind, found = match.lastgroup or "", match[0]
            if is_group and found in "{}":
                depth += 1 if found == "{" else -1
                if depth < 0:
                    return tokens
            if kind == "space" or match["command"] in SPACES:
                spaced = True
            elif found not in _DELIMITERS:
                first, *rest = self._tokens_of(kind, match, word) or (None,)
                tokens += [] if first is None else [first._replace(spaced=spaced or first.spaced), *rest]
                spaced = spaced and first is None
        if is_group:
            raise UnreadableError("a brace that is not closed")
        return tokens

    def _tokens_of(self, kind: str, match: re.Match[str], word: bool) -> list[Token]:
        found = match[0]
        if kind == "number":
            if _DECIMAL_COMMA.fullmatch(found):
                return [Token(NUMBER, found.replace("{,}", "."), word)]
            grouped = found.count(".") > 1
            return [Token(NUMBER, found.replace(".", "") if grouped else _THOUSANDS.sub("", found), word)]
        if kind == "letters" and found in DEGREES:
            return [Token(COMMAND, "degree")]
        if kind == "letters":
            return [Token(LETTERS, found, word)]
        if kind in ("begin", "end"):
            return [Token(kind, match[kind])]
        if kind == "command":
            return self._command(match["command"], word)
        name = "\\\\" if found.startswith("\\\\") else _MARKS.get(found, found)
        return [Token(COMMAND if found in _ASCII_OPERATORS else MARK, name)]

    def _command(self, name: str, word: bool) -> list[Token]:
        if name in DROPPED:
            if name in ("left", "right", "mleft", "mright") and self.text.startswith(".", self.at):
                self.at += 1
            return []
        if name in HIDDEN or name in COLORED:
            self._group(word)
            return self._group(word) if name in COLORED else []
        if name in TEXT:
            return self._group(word=True)
        if name in LETTER_COMMANDS:
            return [Token(LETTERS, LETTER_COMMANDS[name], word)]
        if name in UNWRAPPED:
            inner = self._group(word)
            return inner if len(inner) == 1 else _add_braces(inner)
        alias = ALIASES.get(name, name)
        return [Token(COMMAND if alias.isalnum() and len(alias) > 1 else MARK, alias)]

    def _group(self, word: bool) -> list[Token]:
        """Read the argument that follows: a group in braces, or one token."""
        opened = _ARGUMENT.match(self.text, self.at)
        if opened:
            self.at = opened.end()
            return self.tokens(word, is_group=True)
        match = _TOKEN.match(self.text, self.at)
        if match is not None and match.lastgroup == "space":
            match = _TOKEN.match(self.text, match.end())
        if match is None:
            return []
        self.at = match.end()
        return self._tokens_of(match.lastgroup or "", match, word)


def _count_outer_braces(tokens: list[Token]) -> int:
    """Return how many pairs of braces enclose all tokens; an empty pair does not count."""
    opened: list[int] = []
    closes: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if token.text == "{":
            opened.append(at)
        elif token.text == "}" and opened:
            closes[opened.pop()] = at
    layers = 0
    while len(tokens) - 2 * layers >= 3 and closes.get(layers) == len(tokens) - 1 - layers:
        layers += 1
    return layers


def _is_one_row(tokens: list[Token]) -> bool:
    """Return whether the tokens are an environment for several rows, such as `aligned`, with only one row."""
    if len(tokens) < 3 or tokens[0].kind != BEGIN or tokens[-1].kind != END or tokens[0].text not in SYSTEMS:
        return False
    return not any(token.kind in (BEGIN, END) or token.text == "\\\\" for token in tokens[1:-1])


def _drop_empty_groups(tokens: list[Token]) -> list[Token]:
    """Return the tokens without empty groups `{}`, except those that are arguments."""
    if not any(one.text == "{" and other.text == "}" for one, other in pairwise(tokens)):
        return tokens
    found: list[Token] = []
    for token in tokens:
        empty = token.text == "}" and found and found[-1].text == "{"
        before = found[-2] if len(found) > 1 else None
        if empty and (before is None or before.text not in _TAKES_ARGUMENT):
            found.pop()
        else:
            found.append(token)
    return found


def _unwrap_bases(tokens: list[Token]) -> list[Token]:
    """Return the tokens without the braces around a letter before a subscript: `{v}_0`."""
    found: list[Token] = []
    for token in tokens:
        found.append(token)
        texts = [one.text for one in found[-5:]]
        is_base = texts[-4::2] == ["{", "}"] and token.text == "_" and found[-3].kind in (LETTERS, COMMAND)
        if is_base and not (len(texts) > 4 and texts[0] in {*_TAKES_ARGUMENT, "]"}):
            found[-4:] = [found[-3], token]
    return found


def _put_subscripts_first(tokens: list[Token]) -> list[Token]:
    """Put subscripts before exponents, `v_0^2` for `v^2_0`, and replace `f^{'}` by `f'`."""
    if not any(token.text == "^" for token in tokens):
        return tokens
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        end = _argument_end(tokens, at + 1) if tokens[at].text == "^" else 0
        exponent = [token for token in tokens[at + 1 : end] if token.text not in ("{", "}")]
        subscript_end = (
            _argument_end(tokens, end + 1) if end and tokens[end : end + 1] and tokens[end].text == "_" else 0
        )
        if exponent and all(token.text == "'" for token in exponent):
            found += exponent
            at = end
        elif subscript_end and found and (found[-1].kind in (LETTERS, COMMAND) or _is_decorated(found)):
            found += [*tokens[end:subscript_end], *tokens[at:end]]
            at = subscript_end
        else:
            found.append(tokens[at])
            at += 1
    return found


def _is_decorated(tokens: list[Token]) -> bool:
    """Return whether the tokens end with an accented letter: `\\bar{x}`."""
    return len(tokens) > 3 and [tokens[-3].text, tokens[-1].text] == ["{", "}"] and tokens[-4].text in DECORATIONS


def _argument_end(tokens: list[Token], start: int) -> int:
    """Return the end of the argument (a group or token) at `start`; 0 if it is too long or not closed."""
    depth = 0
    for at in range(start, min(start + MAX_RAISED, len(tokens))):
        depth += {"{": 1, "}": -1}.get(tokens[at].text, 0)
        if depth <= 0:
            return at + 1 if depth == 0 else 0
    return 0


def _add_braces(tokens: list[Token]) -> list[Token]:
    return [Token(MARK, "{"), *tokens, Token(MARK, "}")]
