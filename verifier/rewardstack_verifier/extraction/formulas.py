"""Formulas and numbers in a text, and how several of them make one answer."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

_UNIT_NAMES = (
    "millimeters? millimetres? centimeters? centimetres? decimeters? decimetres? meters? metres? kilometers?"
    " kilometres? inch inche?s foot feet yards? miles? milligrams? grams? kilograms? ounces? pounds? milliliters?"
    " millilitres? liters? litres? cups? pints? quarts? gallons? milliseconds? secs? seconds? mins? minutes? hrs?"
    " hours? days? weeks? months? years? dozens? cents? dollars? bucks? usd euros? eur rupees? inr gbp yen jpy"
    " joules? kilojoules? electronvolts? calories? newtons? kilonewtons? watts? kilowatts? pascals? volts? hertz"
    " celsius fahrenheit kelvin cm mm km kg mg ml mL mph kph ft lbs? oz"
)
UNITS = "|".join(sorted(_UNIT_NAMES.split(), key=len, reverse=True))
"""A pattern of the names that units have in prose."""
UNIT_BEHIND = (
    rf"[*$]{{0,2}}[ -]?(?:\\text\{{ ?)?(?P<unit>(?:(?:square|cubic|sq\.?|cu\.?) )?(?:{UNITS}|[mgL])(?![A-Za-z'])"
    rf"(?:\s?(?:\^?[23](?!\d)|[²³]))?(?:\s?(?:/|per)\s?(?:{UNITS}|[sh])(?![A-Za-z'])[²]?)?|¢)"
)
"""A pattern of the unit right behind a number or formula of a text."""

MAX_TOGETHER = 12
"""Formulas or numbers that are one list at most."""

NUMBER = re.compile(
    r"(?:(?<![\w)\]}])[-+\u2212]\s?)?(?:(?:\b(?:US|R|C|A|HK|NZ)(?=\\?\$))?\\?[$€£¥₹₩₽]\s?)?(?<![\w.])[-+\u2212]?"
    r"(?:\d{1,2}:[0-5]\d(?:\s?[aApP]\.?[mM]\b\.?)|\d+(?::\d+)+|[1-9]\d{0,2}(?:\.\d{3})+,\d+"
    r"|\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?=\s?[€₽])"
    r"|\d+(?:,\d+)*(?:\.\d+)?|\.\d+|[¼-¾⅐-⅞])"
    r"(?:\s?/\s?\d+(?!\w)|\s\d+/\d+(?![\w/])|\s?[¼-¾⅐-⅞]|\sand\sa\s(?:half|quarter|third)\b)?(?:\s?\\?%)?"
)
FORMULA = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$"
    r"|(?<!\\)\$(?P<inline>(?![\s$])(?:[^$\n\\]|\\.)*?(?<!\s))\$(?!\d)"
    r"|(?<!\\)\$(?=[ \t]|[^$\n]*[ \t]\$)"
    r"(?P<spaced>(?:\{[A-Za-z]{2,}\}|\\[A-Za-z]+|\\[^A-Za-z\n]|[^$\n\\A-Za-z]|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+)\$(?!\d)"
    r"|\\\((?P<round>(?:[^\\]|\\[^()])*)\\\)"
    r"|\\\[(?P<square>(?:[^\\]|\\[^\[\]])*)\\\]"
)
JOINT = re.compile(r"\s*(?:,\s*)?(?:\band\b|\bor\b|,)\s*")
_NAMED = re.compile(r"\s*((?:[A-Za-z]|\\[a-z]{2,10})(?:_\{?\w+\}?|[₀-₉]+)?)\s*=[^=]*")
_CONDITION = re.compile(r"\b(?:if|when|where|at|for|with|since|given|because|as|from)\s*$", re.IGNORECASE)
_NOT_IT = re.compile(
    r"(?:\b(?:rul\w{1,4} out|(?:exclud|discard|reject)\w{1,3}|would have (?:been|given|got|gotten|had)"
    r"|not|never|cannot|than|tried|exceeds?|e\.g\.,?|such as)|n't)(?: (?:be|equal|to)){0,3}\s*$",
    re.IGNORECASE,
)
_OPERAND = re.compile(
    r"\b(?:(?:multipl|divid)\w+ (?:\w+ )?by|(?:root|twice|half|double|triple|reciprocal|square|cube)(?: of)?"
    r"|(?:(?:test|try|subtract)(?:ing)?|plugging in|substituting|setting|letting)(?: [A-Za-z] ?=)?)\s*\Z",
    re.IGNORECASE,
)
_LINES = re.compile(
    r"\\begin\{(?:(?:align|gather)(?:ed)?|split|eqnarray)\*?\}(.*)\\end\{(?:(?:align|gather)(?:ed)?|split|eqnarray)\*?\}",
    re.DOTALL,
)
_CURRENCIES = frozenset("$€£¥₹₩₽")
_HEDGE = re.compile(
    r"[\s,(]*\b(?:but )?(?:or|maybe|perhaps|possibly|(?:it )?(?:could|might|may)(?: also)? be)\b\s*"
    r"(?:(?:maybe|perhaps|possibly|even)\s*)?"
)


_UNIT = re.compile(UNIT_BEHIND)
_LARGER = re.compile(
    r"(?<![\w.,])(?P<part>\d+ (?:years?|weeks?|days?|hours?|hrs?|h|minutes?|mins?|feet|ft|pounds?|lbs?),? (?:and )?)\Z"
)
"""A quantity in a larger unit, to which the one behind it is added: `2 hours and 15 minutes`."""
GIVEN = re.compile(
    r"\b(?:(?:for|in|from|after|before|per|over|during|within|on|every|the|all|these|those|his|its|our|their)"
    r"|(?<!left )(?<!up )(?<!her )(?<!him )(?<!them )(?<!us )with"
    r"|(?:out|each|one|none|all|both|end) of|at [A-Za-z] ?=)\s"
    r"(?:(?:the|all|these|those|only|remaining|next|last|first|other)\s){0,2}\Z",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\b(?:theorem|lemma|corollary|proposition|exercise|page|chapter"
    r"|step|case|part|problem|question|example|figure|equation|eq\.|section|method|approach|line)s? ?\(?\Z",
    re.IGNORECASE,
)
_LINE_START = re.compile(r"(?:\A|\n)[ \t*#]*\Z")
_ASIDE = re.compile(
    r"(?<=\s)\((?!\s*(?:or|but|and|maybe|perhaps|possibly|it)\b)(?=[^()]{0,80}[A-Za-z]{2})[^()]{1,200}\)"
    r"|(?<=\s)\((?:about |≈ ?|~ ?)?[\d.]{1,10} ?\\?%\)"
)


def joined_formulas(text: str) -> str | None:
    """The formula that this text starts with, and those joined to it by a comma, "and" or "or"."""
    found: list[re.Match[str]] = []
    match = FORMULA.match(text)
    while match is not None and len(found) <= MAX_TOGETHER:
        found.append(match)
        joint = JOINT.match(text, match.end())
        match = FORMULA.match(text, joint.end()) if joint else None
    if not found:
        return None
    return together(text, found) + unit(text, found) + offered(text[found[-1].end() :])


def last_expression(text: str, start: int = 0) -> str | None:
    """The last formula or number, with those of its kind that are joined to it; None where it is denied or a bound.

    Args:
        text: of a response.
        start: where its last sentence starts, whose numbers go before any other.
    """
    formulas = _last(FORMULA.finditer(text))
    behind = formulas[-1].end() if formulas else 0
    found = (number for number in NUMBER.finditer(_without_asides(text, behind), behind) if not is_label(text, number))
    numbers = _last_stated(text, _last(found), start, bool(formulas))
    if not (numbers or formulas):
        return None
    run = _run(text, numbers or formulas, worded=bool(numbers))
    at = run[0].start()
    if is_denied(text, at):
        return None
    larger = _LARGER.search(text, max(0, at - 60), at) if len(run) == 1 and unit(text, run) else None
    return (larger["part"] if larger else "") + together(text, run) + unit(text, run) or None


def is_denied(text: str, at: int) -> bool:
    """Whether what starts here is denied, a bound, or only tried: `not 7`, `more than 7`, `plugging in x = 7`."""
    return bool(_OPERAND.search(text, max(0, at - 30), at) or _NOT_IT.search(text, max(0, at - 24), at))


def is_label(text: str, number: re.Match[str]) -> bool:
    """Whether a number only counts steps or lines: `Step 4: add them`, `3. Check`."""
    before = max(0, number.start() - 20)
    line = text[number.end() : number.end() + 2] in (". ", ") ") and _LINE_START.search(text, before, number.start())
    return bool(line) or _LABEL.search(text, before, number.start()) is not None


def unit(text: str, run: Sequence[re.Match[str]]) -> str:
    """The known unit right behind a number or formula; empty where there is none, or an amount of money, or a list."""
    match = _UNIT.match(text, run[-1].end()) if len(run) == 1 and not set(content(run[0])) & _CURRENCIES else None
    return f" {match['unit']}" if match else ""


def _without_asides(text: str, start: int) -> str:
    """A text with spaces for what stands in parentheses from here on, such as `(since 3 fails)`."""
    blank = text[:start] + _ASIDE.sub(lambda match: " " * len(match.group()), text[start:])
    return blank if start or NUMBER.search(blank) else text


def _last_stated(text: str, numbers: Sequence[re.Match[str]], start: int, formulas: bool) -> Sequence[re.Match[str]]:
    """Numbers up to the last that is said of something, and not of a circumstance: `540 meters in 1 week`.

    Args:
        text: in which they stand.
        numbers: in a row.
        start: where the last sentence starts.
        formulas: whether there are any before, for which none of these may stand.
    """
    for position in range(len(numbers), 0, -1):
        number = numbers[position - 1]
        if number.start() < start:
            break
        if not GIVEN.search(text, max(0, number.start() - 40), number.start()):
            return numbers[:position]
    return [] if formulas else numbers


def _run(text: str, found: Sequence[re.Match[str]], worded: bool) -> list[re.Match[str]]:
    """The last of these matches, and those before it that are joined to it and say the same kind of thing.

    Args:
        text: in which they were found.
        found: in a row, at least one.
        worded: whether it takes "and" or "or" to join, as between plain numbers.
    """
    run = [found[-1]]
    words = False
    for before in reversed(found[:-1]):
        joint = JOINT.fullmatch(text, before.end(), run[0].start())
        if joint is None:
            break
        words |= "and" in joint.group() or "or" in joint.group()
        run.insert(0, before)
    kinds = {kind(match) for match in run}
    given = "name" in kinds and _CONDITION.search(text, max(0, run[0].start() - 20), run[0].start())
    return run if len(kinds) == 1 and not given and (words or not worded) else [found[-1]]


def kind(match: re.Match[str]) -> str:
    """Whether a formula names a value, says how it compares, or is one."""
    formula = content(match)
    if "=" in formula:
        return "name" if _NAMED.fullmatch(formula) else formula
    return "relation" if re.search(r"[<>≤≥]|\\(?:[lg]eq?|ne|[lg]t)(?![A-Za-z])", formula) else "value"


def together(text: str, found: Sequence[re.Match[str]]) -> str:
    """What matches hold, as one list; the word between them stays."""
    between = [text[one.end() : other.start()] for one, other in pairwise(found)]
    word = next((word for word in ("or", "and") if any(word in joint for joint in between)), "")
    return (f" {word} " if word else ", ").join(map(content, found))


def offered(rest: str) -> str:
    """What the text goes on to offer: ` or 4` for `, or maybe 4`; empty where it offers nothing."""
    hedge = _HEDGE.match(rest)
    other = hedge and (FORMULA.match(rest, hedge.end()) or NUMBER.match(rest, hedge.end()))
    return f" or {content(other)}" if other else ""


def hedges(rest: str) -> bool:
    """Whether a text goes on with another answer, such as ` (or maybe 4)`."""
    hedge = _HEDGE.match(rest)
    return hedge is not None and any(char.isdigit() for char in rest)


def content(match: re.Match[str]) -> str:
    """What a formula holds, without its delimiters, or a number; of aligned lines the last."""
    inside = next((group for group in match.groups() if group is not None), match.group()).strip()
    line = last_line(inside)
    return inside if line is None else line


def last_line(text: str) -> str | None:
    """The last of the aligned lines that a text without delimiters ends with."""
    start = text.rfind("\\begin{") if text.endswith("}") else -1
    lines = _LINES.fullmatch(text, start) if start >= 0 else None
    return lines[1].rstrip("\\ \n").rpartition("\\\\")[2].replace("&", "").strip(" =\n") if lines else None


def _last(matches: Iterator[re.Match[str]]) -> Sequence[re.Match[str]]:
    return list(deque(matches, maxlen=MAX_TOGETHER))
