"""Remove the words and signs around an answer that do not change its value.

The answers `about 5`, `= 5` and `5 (five)` all become `5`; `5 (cm)` becomes `5 cm`.
"""

from __future__ import annotations

from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.reading import numerals
from rewardstack_verifier.reading.lexer import COMMAND, LETTERS, MARK, NUMBER, Token
from rewardstack_verifier.reading.names import FUNCTIONS, MULTI_ARGUMENT_FUNCTIONS, word_set
from rewardstack_verifier.reading.units import parse_unit

_BEFORE, _BEHIND = (
    sorted((tuple(phrase.split()) for phrase in phrases_text.split("|")), key=len, reverse=True)
    for phrases_text in (f"{phrases.ROUGHLY}|{phrases.ANSWER}", phrases.ROUGHLY_BEHIND)
)
"""Phrases that do not change the value after them (`_BEFORE`) or before them (`_BEHIND`), the longest first."""
_FIRST, _LAST = (frozenset(phrase[0] for phrase in _BEFORE), frozenset(phrase[-1] for phrase in _BEHIND))
"""First words of `_BEFORE`, and last words of `_BEHIND`."""
_DENYING = frozenset(phrases.DENYING.split())
_RETRACTING = _DENYING | frozenset(phrases.RETRACTING.split())
"""Words that deny or change the value before them. Parentheses with one of these words are not removed."""
_IS = frozenset(phrases.IS.split())
_NAMELESS = _DENYING | frozenset(phrases.ASKING.split())
"""If the text before "is" contains one of these words, it is not the name of a value, and is not removed."""
_APPLIED = frozenset((*FUNCTIONS, *MULTI_ARGUMENT_FUNCTIONS, "sqrt"))
"""Functions; text in parentheses after a function is its argument, not a remark."""
_VERDICTS = frozenset(word for name in ("yes", "no", "true", "false") for word in phrases.SAME[name].split("|"))
"""Words that are an answer, not a label, before a colon: `No: it is odd`."""
_LABELS = frozenset(phrases.LABELS.split())
_POINT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ(")
_LEADING = word_set("= approx : Rightarrow implies to therefore")
"""Signs that do not change the answer after them."""
MAX_WORDS = 8
"""Maximum words of a remark, or of a name."""


def drop_remarks(tokens: list[Token]) -> list[Token]:
    """Remove words, signs and parentheses that do not change an answer.

    Args:
        tokens: tokens from `tokenize`.
    """
    if len(tokens) > 2 and tokens[0].text == "^":  # bold text, `**5**`: the lexer reads `**` as `^`
        end = len(tokens) - (tokens[-1].text == ".")
        tokens = tokens[1 : end - 1] if tokens[end - 1].text == "^" else tokens
    if len(tokens) > 1 and tokens[-1].text == "." and tokens[-2].text != ".":
        tokens = tokens[:-1]
    tokens = _drop_name(_drop_label(_drop_parentheses(tokens)))
    while len(tokens) > 1 and tokens[0].text in _LEADING and tokens[0].kind in (MARK, COMMAND):
        tokens = tokens[1:]
    first, last = (tokens[0].text.lower(), tokens[-1].text.lower()) if tokens else ("", "")
    for phrase in _BEFORE if first in _FIRST else ():
        if _to_lower(tokens[: len(phrase)]) == phrase and _has_value(tokens[len(phrase) :]):
            return drop_remarks(tokens[len(phrase) :])
    for phrase in _BEHIND if last in _LAST else ():
        if _to_lower(tokens[-len(phrase) :]) == phrase and _has_value(tokens[: -len(phrase)]):
            return tokens[: -len(phrase)]
    return tokens


def _to_lower(tokens: list[Token]) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in tokens)


def _has_value(tokens: list[Token]) -> bool:
    """Return whether tokens contain a number, in digits or in words."""
    words = [token.text.lower() for token in tokens if token.kind == LETTERS]
    has_digits = any(token.kind == NUMBER or token.text == "frac" for token in tokens)
    return has_digits or numerals.parse_number_words(words) is not None


def _drop_parentheses(tokens: list[Token]) -> list[Token]:
    """Remove words in parentheses after a value; if the words are a unit, remove only the parentheses."""
    for at in (at for at in range(1, len(tokens) - 2) if tokens[at].text == "("):
        end = next((end for end in range(at + 2, min(len(tokens), at + MAX_WORDS + 2)) if tokens[end].text == ")"), 0)
        if not end or tokens[at - 1].kind == COMMAND or tokens[at - 1].text in {*_APPLIED, "/"}:
            continue
        inside = tokens[at + 1 : end]
        kept = inside if parse_unit(inside)[1] == len(inside) else []
        is_argument = _is_product(inside) and not tokens[at].spaced and (len(inside[0].text) == 1 or not kept)
        if not is_argument and all(_is_word(token) for token in inside) and not _RETRACTING & {*_to_lower(inside)}:
            value = numerals.parse_number_words([*_to_lower(inside)])
            if value is None or (tokens[at - 1].kind == NUMBER and tokens[at - 1].text == str(value)):
                return [*tokens[:at], *kept, *tokens[end + 1 :]]
    return tokens


def _is_product(tokens: list[Token]) -> bool:
    """Return whether tokens are a letter, or may be a product of up to three letters, as in `2(ab)`."""
    return len(tokens) == 1 and len(tokens[0].text) <= 3 and tokens[0].text.isascii() and not tokens[0].word


def _is_word(token: Token) -> bool:
    return token.kind == LETTERS and (len(token.text) > 1 or token.text in ("a", "I") or not token.text.isascii())


def _drop_label(tokens: list[Token]) -> list[Token]:
    """Remove the words before a colon, `Vertex: (1, 2)`, or before a letter or point, `point B`."""
    at = next((at for at, token in enumerate(tokens[: MAX_WORDS + 1]) if token.text == ":"), 0)
    words = _to_lower(tokens[:at])
    if words and at + 1 < len(tokens) and not {*words} & (_NAMELESS | _VERDICTS) and all(map(_is_long, tokens[:at])):
        return tokens[at + 1 :]
    is_labeled = len(tokens) > 1 and tokens[0].text.lower() in _LABELS and tokens[1].text[:1] in _POINT
    return tokens[1:] if is_labeled else tokens


def _is_long(token: Token) -> bool:
    """Return whether a token is a word and not a product of letters, as in the ratio `AB:BC`."""
    return token.kind == LETTERS and len(token.text) > (1 if token.word else 3 * token.text.isascii())


def _drop_name(tokens: list[Token]) -> list[Token]:
    """Remove a name such as "the vertex is" before its value."""
    at = next((at for at, token in enumerate(tokens[: MAX_WORDS + 1]) if token.text in _IS and at), 0)
    name = tokens[:at]
    is_name = all(token.kind == LETTERS for token in name) and not _NAMELESS & {*_to_lower(name)}
    return tokens[at + 1 :] if at and is_name and at + 1 < len(tokens) else tokens
