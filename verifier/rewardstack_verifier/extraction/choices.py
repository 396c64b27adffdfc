"""Extract the letter of an option (A to J), in the modes of `extraction.extract`.

`strict` reads the last box, answer tag or `####` line. `standard` also reads an announced letter ("the answer is (B)",
"(B) is correct", "I choose B"), a last line that is only a letter, and a single letter that marks a line
("B. Paris") or is in bold. `flexible` also reads the last letter in parentheses or bold, or after "it is".
"""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.announcements import HEDGED, are_joined, find_announcements
from rewardstack_verifier.extraction.bare_answers import bare_answer
from rewardstack_verifier.extraction.boxes import Box, read_box_content
from rewardstack_verifier.extraction.denials import drop_contrasts, is_denied_before, is_denied_behind, is_withdrawn
from rewardstack_verifier.extraction.expressions import last_match
from rewardstack_verifier.extraction.extract import (
    FLEXIBLE,
    STANDARD,
    STRICT,
    WINDOW,
    check_mode,
    check_text,
    find_hash_line,
    find_tag_or_box,
)
from rewardstack_verifier.extraction.visible_text import get_visible_text
from rewardstack_verifier.lexicon.announcements import ANNOUNCEMENTS, CONNECTIVES
from rewardstack_verifier.lexicon.denials import NEGATIONS
from rewardstack_verifier.transcript import split_reasoning

_OPENING = (
    r"(?:[\s*_`$(\[{\"'“「~>]|\\[(\[ ,;]|\\(?:boxed|fbox|(?:text|math)[a-z]{2}|text|bf|rm|displaystyle|underline)\b\s?"
    r"|\\(?:text)?color\{\w{1,12}\}){0,8}"
)
"""A pattern for the signs and commands before a letter."""


def _words(field: str, *, spaced: bool) -> str:
    """Return the patterns in a field of `ANNOUNCEMENTS`, of the languages that separate words by spaces or do not."""
    cells = [getattr(one, field) for one in ANNOUNCEMENTS.values() if one.spaced == spaced]
    return f"(?:{'|'.join(filter(None, cells))})"


_LEAD_IN = re.compile(
    rf"{_OPENING}(?:(?:(?:{CONNECTIVES}|definitely|certainly|for sure|most likely|likely|probably)\b,?|"
    rf"{_words('options', spaced=True)}\b|{_words('options', spaced=False)})[\s:*_]{{0,8}}){{1,6}}",
    re.IGNORECASE,
)
"""Words between a phrase that announces an answer and the letter: "therefore option"."""
_CHOOSES = re.compile(
    rf"\b{_words('choosing', spaced=True)}\b[\s:*_]*|{_words('choosing', spaced=False)}[\s:\uff1a]*",
    re.IGNORECASE,
)
_LETTER = re.compile(rf"(?P<opening>{_OPENING})(?P<letter>[A-Ja-j])")
_CLOSING = re.compile(r"[)\]}*_`$\"'”」]|\\[)\]]")
_CLOSINGS = re.compile(r"(?:[)\]}.*_`$\"'”」]|\\[)\]]){0,8}")
_ATTACHED = re.compile(r"[A-Za-z0-9+#^]|_[A-Za-z0-9{]|[-'\u2019][A-Za-z]")
"""Text right after a letter that makes the letter part of a word."""
_AFTER_WORD = re.compile(
    r"[^\S\n]*(?:$|[\n.,;:!?)(*<。、\u2014\u2013-]|(?:because|since|as|for|which|given|due|but|and|or|so)\b)",
    re.IGNORECASE,
)
"""Text after `A` or `I`, if it shows that this letter is an option, not a word."""
_LINE_END = re.compile(r"[.)]?[\s*_`$]*(?:$|\n|<)")
_JOINT = re.compile(
    r"\s{0,2}\(?(?:<\w{1,20}>\s?)?(?:,\s?(?:and|or)\b|[.;,]?\s?alternatively,?(?=\s)|[,/&、]|和|或"
    r"|\b(?:and|or|as well as|oder|und|ou|et|(?-i:y|e))\b)"
    r"\s{0,2}(?:(?:maybe|perhaps|possibly|option|choice)\s)?"
    r"|[ ;]{0,3}(?=(?:\(?[A-HJ]\)?[ ;.]{0,3}){1,9}(?:\Z|\n))",
    re.IGNORECASE,
)
"""Text between two letters of an answer: a word or sign ("A or B"), or ` ` or `;` if only letters follow ("A B C")."""
_ALSO = re.compile(r"[\s$)]{0,4}(?:and|&)(?=[\s$(\\]{1,4}(?:option\s|choice\s)?\(?[A-J][\s)$.]{0,4}(?:\Z|\n))")
"""The word "and" after a box, if the rest of the line is only another letter."""
_IS_CORRECT = re.compile(
    r"(?P<letter>[A-J])(?<![A-Za-z0-9_\u00c0-\u04ff].)(?<![\\-].)(?<![A-Za-z]['\u2019].)(?:[).*_\]'\"]|\\[)\]]){0,4}"
    rf"(?:(?:,\s[^,.\n]{{1,120}},)?(?:\s[^\s,.\n]{{1,20}}){{0,4}}?\s{_words('right', spaced=True)}"
    rf"|\s?{_words('right', spaced=False)})"
)
"""A letter that the text calls correct: "B is the correct answer"."""
_LONE = re.compile(
    rf"\s*(?:(?:so|thus|hence|therefore)[,:]?\s)?(?:(?:option|choice)\s)?{_OPENING}(?P<letter>[A-J])"
    r"(?:[.:]?[)\]}*_`$.\"'”」\s]|\\[)\]]){0,8}",
    re.IGNORECASE,
)
"""A line that is only a letter."""
_MARK = re.compile(
    r"^[ \t>#*_-]{0,8}(?:(?:[Oo]ption |[Cc]hoice )\(?(?P<called>[A-J])[).:]|\(?(?P<marked>[A-J])(?:[).]|\*\*))"
    r"[*_.:)]{0,3}(?=\s)"
    r"|^(?P<small>[b-j])[.)]\s|^(?P<reason>[A-J]),?\s(?:because|since|as)\s|(?:<<|\[\[)(?P<framed>[A-J])(?:>>|\]\])"
    r"|\*\*\(?(?P<bold>[A-J])[.)]{0,2}\*\*",
    re.MULTILINE,
)
"""A letter that marks a line, "B. Paris", or is in bold."""
_AT_END = re.compile(
    r"[^\n().?!]{1,80}?(?:\((?P<round>[A-J])\)|\bwhich is (?:option|choice) \(?(?P<called>[A-J])\)?)"
    r"[\s*_`$}.]{0,8}(?:\Z|(?=\n))"
)
"""A letter after the text of its option: "None of the above (E)"."""
_ALONE = re.compile(r"(?:(?<=[;:,./(\n])\s?|\b(?:or|and)\s)\(?([A-HJ])\)?(?![A-Za-z'])")
"""A further letter of a list, after a sign or a word such as "or"."""
_PROSE = re.compile(r"(?<!\\)\b(?!or\b|and\b)[a-z]{3,}|\d")
"""Words or digits after the first letter. They are the text of the option, so further letters in it are no answers."""
_ANSWER_WORD = re.compile(
    r"\w{0,4}\s?(?:\w{1,12}\s)?(?:answer|option|choice|antwort|wahl|réponse|option|opción|respuesta|opção|resposta|alternativa"
    r"|risposta|opzione|ответ|вариант|答案|选项|選項)",
    re.IGNORECASE,
)
"""Text after a match of `_IS_CORRECT`, if it says that the letter is the answer, not only that it is correct."""
_LAST = re.compile(
    r"\((?P<round>[A-J])\)|\*\*\(?(?P<bold>[A-J])[.)]{0,2}\*\*"
    r"|\bit(?:['\u2019]s|\sis|\smust\sbe)\s(?P<closing>[A-J])[.!]?\s*\Z"
)
"""A letter in parentheses or bold, or the letter after "it is" at the end of the text."""
FULL_WIDTH: dict[int, str] = (
    {code + 0xFEE0: chr(code) for code in range(0x21, 0x7F)}
    | {0x3002: ". "}
    | dict(zip(map(ord, "\u3010\u3011\u3014\u3015\u300a\u300b\u300c\u300d\u300e\u300f"), '[][]""""""', strict=True))
)
"""Full-width letters and signs of Chinese typography, with their ASCII equivalents."""


def chosen_letters(response: str, mode: str = STANDARD) -> str:
    """Return the letters of the answer: several if it is ambiguous, an empty string if there is no answer.

    Args:
        response: text of the response.
        mode: `strict`, `standard` or `flexible`.

    Raises:
        ValueError: `mode` is unknown.
        TypeError: the response is not a string.
    """
    check_mode(mode)
    check_text("response", response)
    text = get_visible_text(response)
    text = text if text.isascii() else text.translate(FULL_WIDTH)
    thought, reply = split_reasoning(text)
    return _find_letters(reply if reply.strip() else thought, mode)


def _find_letters(text: str, mode: str) -> str:
    marked_letters = _marked_letters(text, mode)
    if marked_letters is not None or mode == STRICT:
        return marked_letters or ""
    text = text[-WINDOW:]
    stated_letters = _stated_letters(text)
    if stated_letters is not None:
        return stated_letters
    lines = text.strip("` \t\r\n").rsplit("\n", 1)
    letters_of_line = _letters_at(lines[-1].strip(), 0)[0]
    if len(letters_of_line) > 1:
        return letters_of_line
    lone = _LONE.fullmatch(lines[-1])
    if lone and (lone["letter"].isupper() or len(lines) == 1):
        return lone["letter"].upper()
    behind = _AT_END.fullmatch(text.strip()) if bare_answer(text) else None
    if behind is not None:
        return _letter_of(behind)
    marks = {_letter_of(match) for match in _MARK.finditer(text) if not _is_denied(text, match.start(), match.end())}
    last = last_match(_LAST.finditer(text)) if mode == FLEXIBLE and len(marks) != 1 else None
    last = None if last and _is_denied(text, last.start(), last.end()) else last
    return _letter_of(last) if last else "".join(sorted(marks))


def _letter_of(match: re.Match[str]) -> str:
    return next(filter(None, match.groups())).upper()


def _marked_letters(text: str, mode: str) -> str | None:
    """Return the letters of the last answer tag or box, else of the last `####` line; None without any of these."""
    inside, box = find_tag_or_box(text)
    if inside is not None:
        return _leading_letters(inside) or (
            _find_letters(inside, mode) if mode != STRICT else _marked_letters(inside, mode) or ""
        )
    if box is not None:
        later = None if mode == STRICT else _stated_letters(text[box.end :][-WINDOW:], is_chosen=True)
        return later or ("" if is_withdrawn(text, box.end) else _boxed_letters(text, box))
    line = find_hash_line(text)
    return None if line is None else _leading_letters(line) or _stated_letters(line[:WINDOW]) or ""


def _boxed_letters(text: str, box: Box) -> str:
    """Return the letters of a box, and the letters next to it ("or B")."""
    letters = _leading_letters(read_box_content(text, box) or "")
    joint = HEDGED.match(text, box.end) or _ALSO.match(text, box.end)
    beside = _announced_at(text, joint.end())[0] if letters and joint else ""
    return "".join(dict.fromkeys(letters + beside))


def _leading_letters(text: str) -> str:
    """Return the first letter of the text in a tag, box or `####` line, and the letters that are listed after it."""
    letters, end = _announced_at(text, 0)
    others = {_letter_of(match) for match in _ALONE.finditer(text, end)} - {*letters}
    return letters + "".join(sorted(others)) if letters and not _PROSE.search(text, end) else letters


def _announced_at(text: str, position: int) -> tuple[str, int]:
    """Return the letters at a position, and where they end.

    A word such as "option", or the text of an option, may precede the letters.
    """
    lead_in = _LEAD_IN.match(text, position)
    letters, end = _letters_at(text, lead_in.end() if lead_in else position)
    behind = None if letters else _AT_END.match(text, position)
    return (_letter_of(behind), behind.end()) if behind else (letters, end)


def _stated_letters(text: str, *, is_chosen: bool = False) -> str | None:
    """Return the last letters that a text announces, else all letters that it only calls correct.

    Args:
        text: a response, or the part of it after a box.
        is_chosen: whether only announced letters count.

    Returns:
        The letters; empty if they are withdrawn or denied later; None if there are none.
    """
    text = drop_contrasts(text)
    denied: set[str] = set()
    called_right: set[str] = set()
    phrases = sorted(
        (*find_announcements(text), *_CHOOSES.finditer(text), *_IS_CORRECT.finditer(text)), key=re.Match.start
    )
    for previous, phrase in zip([None, *phrases][-2::-1], phrases[::-1], strict=True):
        letters, end = _letters_of_phrase(text, phrase)
        if not letters or text.startswith("?", end):
            continue
        if (
            NEGATIONS & {*phrase.group().split()}
            or is_denied_before(text, phrase.start())
            or is_denied_behind(text, end)
        ):
            denied |= {*letters}
        elif is_withdrawn(text, end) or denied & {*letters}:
            return ""
        elif phrase.re is not _IS_CORRECT or "answer" in phrase.group() or _ANSWER_WORD.match(text, end):
            return "" if previous and are_joined(text, previous, phrase, letters) else letters
        else:
            called_right |= {*letters}
    return None if is_chosen else "".join(sorted(called_right - denied)) or None


def _letters_of_phrase(text: str, phrase: re.Match[str]) -> tuple[str, int]:
    """Return the letters that a phrase states, and where they end."""
    return (phrase["letter"], phrase.end()) if phrase.re is _IS_CORRECT else _announced_at(text, phrase.end())


def _is_denied(text: str, start: int, end: int) -> bool:
    return is_denied_before(text, start) or is_withdrawn(text, end)


def _letters_at(text: str, position: int) -> tuple[str, int]:
    """Return the letter at a position, or two different letters that are joined ("A or B"), and where they end."""
    letters, end = "", position
    while len(letters) < 2:
        match = _LETTER.match(text, position)
        if match is None or not _stands_alone(text, match):
            break
        letters += match["letter"].upper() if match["letter"].upper() not in letters else ""
        end = _match_end(_CLOSINGS, text, match.end())
        joint = _JOINT.match(text, end)
        if joint is None:
            break
        position = joint.end()
    return letters, end


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Return whether a letter can be an answer: not the article "a", the pronoun "I" or a part of a word."""
    end, letter = match.end(), match["letter"]
    if match["opening"].strip() and _CLOSING.match(text, end):
        return True
    if _ATTACHED.match(text, end):
        return False
    if letter.islower():
        return _LINE_END.match(text, end) is not None and (letter not in "ai" or text[end : end + 1] in (".", ")"))
    return letter not in "AI" or _AFTER_WORD.match(text, end) is not None
