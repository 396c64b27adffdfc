"""Parse answers in words: letters of a choice, numbers, remainders, verdicts ("yes"), names and remarks."""

from __future__ import annotations

import re
from itertools import permutations

from rewardstack_verifier.lexicon import phrases
from rewardstack_verifier.lexicon.calendar import WEEKDAYS
from rewardstack_verifier.numbers.tree import Number
from rewardstack_verifier.reading import numerals
from rewardstack_verifier.reading.lexer import LETTERS, NUMBER, Token, UnreadableError, parse_first, tokenize
from rewardstack_verifier.reading.names import FUNCTIONS, GREEK, JOINING, MULTI_ARGUMENT_FUNCTIONS
from rewardstack_verifier.reading.parser import MAX_FACTORS, parse_formula
from rewardstack_verifier.reading.quantities import parse_quantity
from rewardstack_verifier.reading.syntax import Choice, NamedSet, Node, Remark, Sequence, Words, is_point
from rewardstack_verifier.reading.terms import make_number

_CHOICE = re.compile(r"(?:(?:option|choice|Option|Choice) )?\(?([A-J])\)?[.:]?")
_CHANGING = frozenset(word for word in phrases.CHANGING.split() if len(word) > 1)
_CHOICES = re.compile(r"[A-H]{2,8}")
_JOINER = rf"(?:{'|'.join(word for word in JOINING if word.isalpha())}|through)"
_OTHER_OPTION = re.compile(
    rf"(?:(?P<word>{_JOINER})|[-+/,;:&]| )* ?"
    rf"(?:\([A-HJ]\)(?! ?{_JOINER} ?\([A-HJ]\)\Z)|(?(word)[A-HJ](?![A-Za-z])|[A-HJ](?: [A-HJ])+\Z)).*"
)
"""The letter of another option after the first one: `or C`, `-(E)`, `(C)`, `C D E`. `(I)` may be a Roman number, and
`(A) and (B)` may be the text of the option."""
_REJECTION = re.compile(
    rf"not|(?:{'|'.join(phrases.IS.split())})(?:n't| (?:{'|'.join(phrases.DENYING.split())}))"
    r"(?: (?:the |a )?(?:correct|right|true|valid|answer|option|choice)){0,3}"
)
"""Words after a letter that reject it: "is wrong", "is not the right answer"."""
_JOINED = frozenset(word for word, joins in JOINING.items() if word.isalpha() and word not in ("land", "lor", "to"))
_SETS = {"empty set": "empty", "all real": "R", "all integer": "Z", "all positive integer": "Z+"}
"""Normal forms of phrases that name a set, and the name in `NamedSet`."""
MAX_COORDINATES = 4
"""Maximum coordinates of a point whose permutations are compared."""
MAX_LETTERS = 300
"""Maximum letters of a phrase."""
VERDICTS = ("yes", "no", "true", "false")
_NEGATING = frozenset(phrases.NEGATING.split())
_DENYING = frozenset(("opposite", *phrases.DENYING.split())) - _NEGATING
_DOUBTING = frozenset(("maybe", "perhaps", "opposite"))
_ARTICLES = frozenset(phrases.ARTICLES.split())
_SILENT = re.compile(rf"\b(?:{phrases.SILENT})\b")
_SAME = {phrase: one for one, several in phrases.SAME.items() for phrase in several.split("|")} | {
    name: days.split("|")[0]
    for row in WEEKDAYS.values()
    for days, names in zip(WEEKDAYS["en"].split(), row.split(), strict=True)
    for name in names.split("|")
}
"""Normal form of each phrase and weekday."""
_SPOKEN = {tuple(words.split()): tuple(tokenize(signs)) for words, signs in phrases.SPOKEN.items()}
"""Tokens of the notation for each phrase of `phrases.SPOKEN`: those of `^2` for "squared"."""
MAX_OPERATION_WORDS = 4
"""Maximum number of words of a phrase in `_SPOKEN`."""
_HAS = re.compile(
    r"(?:\w+ ){0,4}?(?:(?:has|have) (?=(?:no|infinite|infinitely|one|two|exactly|many)\b)|is (?=undefined))"
)
"""Words before the normal form of an answer: "the equation has" before "no solution"."""
_CLASS = re.compile(r"(?<=\w) (?:function|number|integer|triangle)$")
"""A noun that is dropped after an adjective: "even function" becomes "even"."""
_PLURAL = re.compile(r"(?<=[a-z]{3}[a-rt-z])s\b")
_WORD = re.compile(r"\w{4}|(?=\w*[aeiouAEIOU])\w{3}|[A-Z]\w{2}|^[Nn]o$|[^\W\d_a-zA-Z]")
"""Letters that are a word and not a product, such as four letters, or three with a vowel."""


def parse_choice(tokens: list[Token]) -> Choice:
    """Parse the letter of a multiple-choice option, with the text of the option if it is given.

    Raises:
        UnreadableError: the tokens are not a choice.
    """
    alone = _CHOICE.fullmatch(to_text(tokens))
    if alone:
        return Choice(alone[1])
    if len(tokens) > 3 and tokens[0].text == "(" and tokens[2].text == ")" and _CHOICE.fullmatch(tokens[1].text):
        return Choice(tokens[1].text, _parse_option(tokens[3:]))
    if len(tokens) > 2 and tokens[1].text in (".", ":", ")") and _CHOICE.fullmatch(tokens[0].text):
        return Choice(tokens[0].text, _parse_option(tokens[2:]))
    if len(tokens) > 3 and tokens[-3].text == "(" and tokens[-1].text == ")" and _CHOICE.fullmatch(tokens[-2].text):
        return Choice(tokens[-2].text, _parse_option(tokens[:-3]))
    raise UnreadableError("not a choice")


def parse_choices(tokens: list[Token]) -> Sequence:
    """Parse the adjacent letters of several choices: `ABD`.

    Raises:
        UnreadableError: there are fewer than two letters, or they are not in alphabetical order.
    """
    letters = "".join(token.text for token in tokens)
    if not _CHOICES.fullmatch(letters) or sorted({*letters}) != [*letters]:
        raise UnreadableError("not several choices")
    return Sequence("", tuple(map(Choice, letters)), "", ("and",) * (len(letters) - 1))


def parse_verdict(tokens: list[Token]) -> Words:
    """Parse a verdict (yes, no, true or false) that is followed by its reason: "No, it is not".

    Raises:
        UnreadableError: the tokens do not begin with a verdict, or the reason withdraws it.
    """
    first = _SAME.get(tokens[0].text.lower()) if tokens else None
    if first not in VERDICTS or len(tokens) < 3 or tokens[1].text not in (",", ":", ";", "."):
        raise UnreadableError("not a verdict")
    if any(_SAME.get(token.text.lower()) in VERDICTS for token in tokens[1:]):
        raise UnreadableError("two verdicts")
    if _is_withdrawn(first, [token.text.lower() for token in tokens[2:]]):
        raise UnreadableError("a verdict that is withdrawn")
    return Words(first)


def _is_withdrawn(verdict: str, reason: list[str]) -> bool:
    """Return whether the reason after a verdict withdraws it. A negation does not withdraw "no" or "false"."""
    if verdict in ("no", "false"):
        return not _DOUBTING.isdisjoint(reason)
    return not _DENYING.isdisjoint(reason) or bool(_NEGATING.intersection(reason[:1]))


def parse_numeral(tokens: list[Token]) -> Number:
    """Parse a number in words, with or without the same number in parentheses: `forty-two (42)`.

    Raises:
        UnreadableError: the tokens are not a number in words.
    """
    *words, opened, digits, closed = tokens if len(tokens) > 3 else [*tokens, *[Token(LETTERS, "")] * 3]
    repeated = (opened.text, closed.text) == ("(", ")") and digits.kind == NUMBER
    text = to_text(words if repeated else tokens).lower().strip("'\". ")
    number_words = text.replace("-", " ").split() if len(text) <= MAX_LETTERS else []
    value = numerals.parse_number_words(number_words)
    if value is None and number_words and number_words[0] in _ARTICLES:
        value = numerals.parse_number_words(number_words[1:])
    if value is None or (repeated and digits.text != str(value)):
        raise UnreadableError("not a number in words")
    return Number(value)


def parse_permutations(tokens: list[Token]) -> Sequence:
    """Parse a point with all orders of its coordinates: "(1, 2, 3) and its permutations".

    Raises:
        UnreadableError: the tokens do not end with such words, or do not begin with a point.
    """
    at = next((at for at, token in enumerate(tokens) if token.kind == LETTERS and token.text in _JOINED), 0)
    words = " ".join(token.text.lower() for token in tokens[at:]).strip(" .")
    point = parse_formula(tokens[:at]) if words in phrases.PERMUTATIONS.split("|") else None
    if point is None or not is_point(point) or len(point.items) > MAX_COORDINATES:
        raise UnreadableError("no permutations of a point")
    orders = dict.fromkeys(permutations(point.items))
    return Sequence("{", tuple(Sequence("(", one, ")", point.joined) for one in orders), "}")


def parse_remainder(tokens: list[Token]) -> Sequence:
    """Parse a quotient and its remainder: `5 R 2`, "5 remainder 2".

    Raises:
        UnreadableError: the tokens are not a quotient with a remainder.
    """
    texts = [token.text for token in tokens if token.text not in ("{", "}", ",", ".", "with", "a", "of")]
    if len(texts) != 3 or texts[1] not in phrases.REMAINDER.split() or not (texts[0] + texts[2]).isdecimal():
        raise UnreadableError("not a remainder")
    return Sequence("<", (make_number(texts[0]), make_number(texts[2])), ">", ("remainder",))


def parse_phrase(tokens: list[Token]) -> Words | NamedSet:
    """Parse words into their normal form, without articles and plurals; return a `NamedSet` if they name a set.

    Raises:
        UnreadableError: the tokens have no words, can be a product of letters, or contain a mathematical sign or a
            joining word such as "and".
    """
    common = normalize_phrase(_phrase_text(tokens))
    if common in _SETS:
        return NamedSet(_SETS[common])
    if not common:
        raise UnreadableError("no words")
    return Words(common)


def parse_spoken_formula(tokens: list[Token]) -> Node:
    """Parse a formula whose operations are written as words: "the square root of 2", "3 squared".

    Raises:
        UnreadableError: the tokens contain no phrase for an operation, or are not a formula.
    """
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        texts = tuple(token.text.lower() for token in tokens[at : at + MAX_OPERATION_WORDS])
        length = next((length for length in range(len(texts), 0, -1) if texts[:length] in _SPOKEN), 0)
        found += _SPOKEN[texts[:length]] if length else (tokens[at],)
        at += length or 1
    if len(found) == len(tokens) and found == tokens:
        raise UnreadableError("no operation in words")
    return parse_formula(found)


def parse_remark(tokens: list[Token]) -> Remark:
    """Return a line with words as a `Remark`, for lines that no other reader can parse.

    Raises:
        UnreadableError: the line has no words, has a subscript, or is too long.
    """
    if len(tokens) > MAX_LETTERS or not any(_is_word(token) for token in tokens):
        raise UnreadableError("no words")
    if any(token.text == "_" for token in tokens):
        raise UnreadableError("a subscript in words, which may be a base")
    return Remark(to_text(tokens).lower().rstrip("."))


def normalize_phrase(text: str) -> str:
    """Return the normal form of a phrase. Synonyms have the same normal form.

    Args:
        text: the phrase in lower case.
    """
    text = " ".join(text.replace("-", " ").split())
    if text in _SAME:
        return _SAME[text]
    words = _SILENT.sub(" ", text).split()
    bare = " ".join(word for word in words if word not in _ARTICLES or word is words[-1])  # `Team A` has no article
    singular = _HAS.sub("", _PLURAL.sub("", bare), count=1)
    # The singular of a single word is not looked up: "Paris" is not the plural of Italian "pari" (even).
    found = _SAME.get(bare) or (_SAME.get(singular) if singular == bare or " " in bare else None)
    return found or _CLASS.sub("", singular)


def _phrase_text(tokens: list[Token]) -> str:
    """Return the text of a phrase in lower case."""
    text = to_text(tokens).strip("'\"() .!")
    upright = all(token.word for token in tokens if token.kind == LETTERS)
    marks = {token.text for token in tokens if token.kind != LETTERS}
    if not marks <= {"'", "-", ".", "(", ")", '"', "!"} or len(text) > MAX_LETTERS or not text:
        raise UnreadableError("no words")
    if any(token.kind == LETTERS and token.text in _JOINED and len(token.text) > 1 for token in tokens):
        raise UnreadableError("several answers, joined by a word")
    if text.lower() in _SAME:
        return text.lower()
    if not (upright and any(token.kind == LETTERS for token in tokens)) and not any(map(_WORD.search, text.split())):
        raise UnreadableError("letters that are factors")
    return text[0].upper() + text[1:] if len(text) == 2 else text.lower()  # `CO` is not `Co`


def _parse_option(tokens: list[Token]) -> Node:
    """Parse the text of a multiple-choice option.

    Raises:
        UnreadableError: the text cannot be parsed, names another option, or rejects the option before it.
    """
    text = to_text([token for token in tokens if token.text not in ("{", "}")])
    if _OTHER_OPTION.fullmatch(text) or _REJECTION.fullmatch(text.strip(" .")):
        raise UnreadableError("not only one option")
    return parse_first((parse_formula, parse_quantity, parse_phrase), tokens)


def _is_word(token: Token) -> bool:
    """Return whether a token is a word and not a mathematical name."""
    if (
        token.kind != LETTERS
        or token.text in FUNCTIONS
        or token.text in GREEK
        or token.text in MULTI_ARGUMENT_FUNCTIONS
    ):
        return False
    return (
        len(token.text) > MAX_FACTORS + 1
        or token.text in _CHANGING
        or (token.word and len(token.text) > 1)
        or not token.text.isascii()
    )


def to_text(tokens: list[Token]) -> str:
    """Return tokens as a line of text, with spaces between words or numbers, and after commas."""
    line = ""
    for token in tokens:
        spaced = token.kind in (LETTERS, NUMBER) and line[-1:].isalnum()
        line += f" {token.text}" if spaced or line.endswith(",") else token.text
    return line
