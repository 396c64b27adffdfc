"""What a sentence in a language other than English says in words: a verdict, date or day, that there is no solution."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.bare import BOLD
from rewardstack_verifier.extraction.languages import ANNOUNCED, Tongue
from rewardstack_verifier.lexicon.calendar import MONTHS, WEEKDAYS
from rewardstack_verifier.lexicon.phrases import SAME


def _names(rows: dict[str, str]) -> list[str]:
    """All names in the rows of a table, the longest first."""
    return sorted(
        (name for row in rows.values() for names in row.split() for name in names.split("|")), key=len, reverse=True
    )


MONTH = "|".join(_names(MONTHS))
"""A pattern of the names of months."""
_COPULA = re.compile(
    r"['\u2019\u201d\u300d\"]?\s*"
    r"(?:है|हैं|होगा|होगी|입니다|이다|이에요|예요|です|である|だ|となる|になる|ある|고 할 수 있다)?"
    r"[\s.!*'\"\u2019\u201d\u300d\u3002\u0964]*\Z"
)
_COLON = re.compile(r":\s")
_WEEKDAY = re.compile(
    "|".join(rf"(?<!\w){name}(?!\w)" if name[0] < "\u3000" else name for name in _names(WEEKDAYS) if len(name) > 2),
    re.IGNORECASE,
)
_LAST_DAY = re.compile(rf"(?:\s|(?<=[\u3040-\u9fff])|\A)(?P<day>{_WEEKDAY.pattern}){_COPULA.pattern}", re.IGNORECASE)
_DATE = re.compile(
    rf"\d{{1,2}}(?:\.|º|er|-\u0433\u043e|°)?\s(?:de\s)?(?:{MONTH})(?!\w)(?:\s(?:de\s|del\s)?\d{{4}})?"
    r"|(?:\d{4}\s?[年년]\s?)?\d{1,2}\s?[月월]\s?\d{1,2}\s?[日일号]",
    re.IGNORECASE,
)
_PHRASES = {name: sorted(SAME[name].split("|"), key=len, reverse=True) for name in SAME}
_COLOURS = frozenset(("red", "blue", "green", "yellow", "black", "white", "gray"))
_SAID = "|".join(
    re.escape(one)
    for one in sorted(
        (one for name, ones in _PHRASES.items() if name not in _COLOURS for one in ones), key=len, reverse=True
    )
)
_ENDING = re.compile(
    rf"(?:(?<![^\W_])|(?<=[\u3040-\u30ff\u4e00-\u9fff]))(?P<said>{_SAID})(?:s|en|es)?{_COPULA.pattern}", re.IGNORECASE
)
_VERDICTS = frozenset(
    one for name in ("yes", "no", "no solution", "infinitely many") for one in _PHRASES[name] if len(one) > 1
)
"""What a sentence with values may end with to say no value."""
_QUOTED = re.compile(r"['\u2018\u201c\u300c\"][^'\u2019\u201d\u300d\"\d]{1,8}['\u2019\u201d\u300d\"]\S{0,6}\Z")
_YES_OR_NO = "|".join(map(re.escape, _PHRASES["yes"] + _PHRASES["no"]))
_VERDICT = re.compile(
    rf"[\s:]*['\"\u2018\u201c\u00bf\u00a1\u300c]?(?P<said>{_YES_OR_NO})['\"\u2019\u201d\u300d]?\s?[,.;:!\u2014\u060c-]",
    re.IGNORECASE,
)


def said_in_words(sentence: str, tongue: Tongue, has_values: bool) -> str | None:
    """A verdict, date or day that a sentence says; one with values says it at its beginning or end alone.

    Args:
        sentence: of a response.
        tongue: of its language.
        has_values: whether numbers or formulas stand in it.
    """
    dates = [date for date in _DATE.finditer(sentence) if not any(map(str.isdigit, sentence[date.end() :]))]
    if dates:
        return dates[-1][0]
    opening = tongue.connective.match(sentence)
    announced = ANNOUNCED.search(sentence)
    starts = [0, *(one.end() for one in (opening, announced, _COLON.search(sentence)) if one)]
    verdict = next((found for at in starts if (found := _VERDICT.match(sentence, at))), None)
    if verdict is not None:
        return verdict["said"]
    ending, day = _ENDING.search(sentence), _LAST_DAY.search(sentence)
    if day is not None:
        return day["day"]
    if ending is not None and (not has_values or (ending["said"].lower() in _VERDICTS or _QUOTED.search(sentence))):
        return ending["said"]
    if has_values:
        return None
    stressed = BOLD.findall(sentence)
    if len(stressed) == 1 and not stressed[0].endswith(":"):
        return str(stressed[0])
    if tongue.denial.search(sentence) and tongue.solutions.search(sentence):
        return "no solution"
    days = _WEEKDAY.findall(sentence)
    return str(days[-1]) if days else None
