"""`multiple_choice`: 1 if the response's last statement of an answer names the reference's letter, A to J; else 0.

A statement is "the answer is (B)" and its like, `\\boxed{B}`, `<answer>B</answer>`, "(B) is correct". Without one, the
last line counts if it is a letter and nothing else; then the letter that marks a line ("B. Paris") or stands in bold,
if no other letter does. A letter that is then denied ("is incorrect", "? No, D.") gives way to the one that takes its
place; one beside which another is offered ("or maybe C") is no answer. What a model thought before `</think>` counts
only where nothing stands after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rewardstack_rules.functions.outcome import Outcome, Unscored
from rewardstack_verifier.extraction.languages import ANSWER_IS
from rewardstack_verifier.extraction.settled import NO, is_denied
from rewardstack_verifier.extraction.visible import visible

WINDOW = 50_000
"""Characters at the end of a response in which an answer is looked for."""
THOUGHT = "</think>"
SEVERAL = "the answer names several letters"

_OPENING = r"(?:[\s*_`$(\[{\"'“「]|\\[(\[]|\\(?:boxed|text|textbf|textit|mathbf|mathrm|mathsf|bf|rm)\b\s?){0,8}"
_SURE = r"therefore|thus|then|indeed|clearly|definitely|most likely|likely|probably|simply|also"
_NOUN = r"(?:\s{0,2}\b(?:the\s)?(?:correct\s)?(?:option|choice|letter|answer)\b)?"
_IS = (
    r"\b(?:\s(?:to|for)\s[^.:\n]{1,80}?)?[\s*_\"]{0,4}"
    r"(?:\b(?:is|would be|must be|should be|has to be)\b|[:=→]|->)[\s:]{0,4}"
    rf"(?:\b(?:{_SURE})\b,?\s?){{0,2}}{_NOUN}(?:\s?not\s\(?[A-J]\)?,?\sbut\b)?"
)
_SUBJECTS = ("answer", "Answer", "ANSWER", "choice", "Choice", "option", "Option")
# Every alternative begins with a letter, not with an assertion: a search is then ten times as fast.
_LEAD = re.compile(
    "|".join(
        rf"{word}(?<!\w{word})(?<!wrong {word})(?<!incorrect {word})(?<!false {word})(?i:{_IS})" for word in _SUBJECTS
    )
    + rf"|(?i:{ANSWER_IS})"
    + r"|\\(?:boxed|fbox)\s?(?=\{)|<answer>|答案应该是|选(?:择)?|選(?:擇)?"
    + rf"|I(?<!\wI)(?:['\u2019](?:d|ll)| would| will)?\s(?:choose|chose|pick|select|go with|say)\b(?i:{_NOUN})"
)
_LETTER = re.compile(rf"(?P<opening>{_OPENING})(?P<letter>[A-Ja-j])")
_CLOSING = re.compile(r"[)\]}*_`$\"'”」]|\\[)\]]")
_CLOSINGS = re.compile(r"(?:[)\]}.*_`$\"'”」]|\\[)\]]){0,8}")
_ATTACHED = re.compile(r"[A-Za-z0-9_+#]|[-'\u2019][A-Za-z]")
_AFTER_WORD = re.compile(
    r"[^\S\n]*(?:$|[\n.,;:!?)(*<。、\u2014\u2013-]|(?:because|since|as|for|which|given|due|but|and|or|so)\b)",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"[.)]?[\s*_`$]*(?:$|\n|<)")
_JOINT = re.compile(
    r"\s{0,2}(?:[,/&、]|\b(?:and|or)\b|,\s?(?:and|or)\b|和|或)\s{0,2}(?:(?:option|choice)\s)?", re.IGNORECASE
)
_VERDICT = re.compile(
    r"(?P<letter>[A-J])(?<![\w\\'\u2019-].)(?:[).*_\]]|\\[)\]]){0,4}\s(?:is|must be|would be)\s(?:therefore\s|thus\s)?"
    r"(?:the\s)?(?:only\s)?(?:correct|right|best|answer)\b"
)
_LONE = re.compile(
    rf"\s*(?:(?:option|choice)\s)?{_OPENING}(?P<letter>[A-J])(?:[.:]?[)\]}}*_`$.\"'”」\s]|\\[)\]]){{0,8}}",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"^[ \t>#*_-]{0,8}(?:[Oo]ption |[Cc]hoice )?\(?(?P<marked>[A-J])(?:[).:]|\*\*)[*_.:)]{0,3}(?=\s)"
    r"|\*\*\(?(?P<bold>[A-J])[.)]{0,2}\*\*",
    re.MULTILINE,
)
_REFERENCE = re.compile(r"\s*[(\[]?(?P<letter>[A-Ja-j])(?:[)\].:]{0,2}\s*|[)\].:]{1,2}\s.*)", re.DOTALL)
_INSTEAD = re.compile(
    rf"[\s.,;:!?)*\]}}$_\u2014-]{{0,8}}(?:wait\b[,.! ]{{0,3}})?{NO}[\s,.:;!\u2014-]{{0,4}}"
    r"(?:(?:it(?:'s| is| should be| must be)|the answer is|actually)\s)?\(?(?P<letter>[A-J])\b",
    re.IGNORECASE,
)
_OR_ANOTHER = re.compile(
    r"[\s,;)*\]}$_]{0,6}(?:or|oder|ou|o|или|或)\s(?:maybe|perhaps|possibly|vielleicht|peut-être|quizás)\s\(?[A-J]\b"
)
_FULL_WIDTH = {code + 0xFEE0: code for code in range(0x21, 0x7F)}


class Statement(NamedTuple):
    """Where a statement of an answer starts and ends, and its letters."""

    start: int
    end: int
    letters: str


def multiple_choice(response: str, reference: str) -> Outcome:
    """Compares two letters.

    Args:
        response: what the policy wrote; an answer of several letters ("A or B") is wrong.
        reference: the letter, alone or as in `(B)`, `B.` or `B) Paris`.

    Raises:
        Unscored: the reference is no letter from A to J.
    """
    expected = _REFERENCE.fullmatch(reference.translate(_FULL_WIDTH))
    if expected is None:
        raise Unscored("the reference is no letter from A to J")
    text = visible(response)[-WINDOW:].translate(_FULL_WIDTH)
    after = text.rpartition(THOUGHT)[2]
    letters = _answer(after if after.strip() else text)
    if len(letters) != 1:
        return Outcome(0.0, SEVERAL if letters else "no answer that is a letter from A to J")
    return Outcome(float(letters == expected["letter"].upper()))


def _answer(text: str) -> str:
    """The letters of the answer; several where it does not decide, none where there is no answer."""
    statements = sorted(_statements(text))
    if statements:
        letters = {*statements[-1].letters, *_boxes_beside(text, statements)}
        return _kept(text[statements[-1].end :], "".join(sorted(letters)))
    lines = text.strip().rsplit("\n", 1)
    lone = _LONE.fullmatch(lines[-1])
    if lone and (lone["letter"].isupper() or len(lines) == 1):
        return lone["letter"].upper()
    marks = {match["marked"] or match["bold"] for match in _MARK.finditer(text) if not is_denied(text[match.end() :])}
    return "".join(sorted(marks))


def _boxes_beside(text: str, statements: list[Statement]) -> str:
    """The letters of a box that stands side by side with the last one, which are one list."""
    if len(statements) < 2 or not text.startswith(("\\boxed", "\\fbox"), statements[-1].start):
        return ""
    before, last = statements[-2:]
    boxed = text.startswith(("\\boxed", "\\fbox"), before.start)
    return before.letters if boxed and not text[before.end : last.start].strip(" ,;$\n") else ""


def _kept(rest: str, letters: str) -> str:
    """The letters, unless what stands behind them denies them, names another in their place, or one beside them."""
    instead = _INSTEAD.match(rest)
    if instead is not None:
        return instead["letter"].upper()
    if is_denied(rest) or _OR_ANOTHER.match(rest):
        return ""
    return letters


def _statements(text: str) -> Iterator[Statement]:
    """The statements of an answer in a text."""
    end = 0
    for lead in _LEAD.finditer(text):
        if lead.start() >= end:  # else it is a part of the statement before, as in "\\boxed{A} or \\boxed{B}"
            letters, end = _letters_at(text, lead.end())
            if letters:
                yield Statement(lead.start(), end, letters)
    for verdict in _VERDICT.finditer(text):
        yield Statement(verdict.start(), verdict.end(), verdict["letter"])


def _letters_at(text: str, position: int) -> tuple[str, int]:
    """The letter that stands at a position, or two where another is joined to it; and where they end."""
    letters, end = "", position
    while len(letters) < 2:
        match = _LETTER.match(text, position)
        if match is None or not _stands_alone(text, match):
            break
        letters += match["letter"].upper()
        end = _end(_CLOSINGS, text, match.end())
        position = _end(_JOINT, text, end)
        if position == end:
            break
    return letters, end


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is an answer, and not the article "a", the pronoun "I" or the beginning of a word."""
    end, letter = match.end(), match["letter"]
    if match["opening"].strip() and _CLOSING.match(text, end):
        return True
    if _ATTACHED.match(text, end):
        return False
    if letter.islower():
        return _LINE_END.match(text, end) is not None and (letter not in "ai" or text[end : end + 1] in (".", ")"))
    return letter not in "AI" or _AFTER_WORD.match(text, end) is not None
