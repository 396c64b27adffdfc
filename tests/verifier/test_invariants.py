"""What holds for every reference of the cases: it equals itself, an edit of one token makes it another answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import combinations, permutations
from pathlib import Path
from random import Random

import pytest

from rewardstack_verifier.bounds import refusal
from rewardstack_verifier.comparison.compare import compare
from rewardstack_verifier.extraction.extract import reference_answer
from rewardstack_verifier.lexicon.units import MARKED, UNITS
from rewardstack_verifier.question import Question
from rewardstack_verifier.reading.names import NO_FACTORS
from rewardstack_verifier.verification import decide
from tests.support.table import Table

CASES = Path(__file__).parents[1] / "cases"
FILES = sorted([*CASES.glob("values/*.json"), *CASES.glob("mathematics/*.json")])
LONGEST = 200
"""Characters of the longest reference."""
SOME = 100
"""References in a fast run of each test; all are tried each night."""
DIFFERENT: list[str] = json.loads((CASES / "different.json").read_text())
"""References that are different from each other."""
Edit = Callable[[str], str]


def _references() -> list[str]:
    texts = {reference_answer(case["reference"]) for path in FILES for case in json.loads(path.read_text())}
    return sorted(text for text in texts if text and len(text) <= LONGEST and not refusal(text))


REFERENCES = _references()
DRAWN = [pytest.param(SOME, id="some"), pytest.param(len(REFERENCES), id="all", marks=pytest.mark.nightly)]


def _draw(count: int) -> list[str]:
    return Random(64).sample(REFERENCES, count)


def _is_equal(answer: str, reference: str) -> bool:
    return bool(decide(Question(answer, (reference,))).right)


def _spaced(text: str) -> str:
    return re.sub(r"(?<=[0-9a-z)}])(?=[=+<>])|(?<=[=<>])(?=[0-9a-z(\\])", " ", text)


SAME: dict[str, Edit] = {
    "as it is": lambda text: text,
    "in a box": lambda text: f"\\boxed{{{text}}}",
    "in dollars": lambda text: text if "$" in text else f"${text}$",
    "with a full stop": lambda text: f"{text}.",
    "in other spacing": _spaced,
}
BROKEN = {"\\frac{1}{"}
"""References that are not LaTeX, so that a box around them is not closed."""


@pytest.mark.parametrize("count", DRAWN)
@pytest.mark.parametrize("name", SAME)
def test_equals_itself(name: str, count: int) -> None:
    """Every reference equals itself, however it is set."""
    texts = [text for text in _draw(count) if text not in BROKEN]
    assert [text for text in texts if not _is_equal(SAME[name](text), text)] == []


def _once(pattern: str, change: Callable[[re.Match[str]], str]) -> Edit:
    return lambda text: re.sub(pattern, change, text, count=1)


def _swap(pattern: str, pairs: str) -> Edit:
    table = dict(pair.split("/") for pair in pairs.split())
    table |= {other: one for one, other in table.items()}
    return _once(pattern % "|".join(map(re.escape, table)), lambda match: table[match[0]])


def _letter(text: str) -> str:
    letters = [*re.finditer(r"(?<![\\A-Za-z{])[a-zA-Z](?![A-Za-z{])", text)]
    return f"{text[: letters[-1].start()]}w{text[letters[-1].end() :]}" if letters else text


def _order(text: str) -> str:
    items = re.fullmatch(r"([^,=()\[\]{}]+), ?([^,=()\[\]{}]+)", text)
    return f"{items[2]}, {items[1]}" if items and items[1] != items[2] else text


OTHER: dict[str, tuple[Edit, dict[str, str]]] = {
    "another number": (
        _once(r"(?<![\d.,])\d+(?![\d.,])", lambda match: str(int(match[0]) + 1)),
        {
            r"\([A-J]\)": "the letter of an option decides, not its text",
            r"[Cc]_\d|\dC": "constants may have other names and factors",
            r"\w\(x\)=.*=": "a step with a letter that is not in the result is not checked",
        },
    ),
    "another sign": (
        _swap("%s", "+/-"),
        {
            r"C|c_\d": "a constant may have either sign",
            r"pi|(?i:integer)": "a parameter takes all integers, and a cosine both signs",
            r"\w\(x\)=.*=": "a step with a letter that is not in the result is not checked",
        },
    ),
    "another letter": (
        _letter,
        {r"[fg]\(x\)": "the argument of a function may have another name"},
    ),
    "another word": (
        _swap(
            r"(?<![\\A-Za-z])(?:%s)(?![A-Za-z])",
            "increase/decrease odd/even north/south east/west more/less older/younger profit/loss yes/no true/false"
            " circle/sphere red/blue Monday/Tuesday left/right positive/negative rational/irrational real/complex"
            " minimum/maximum inches/miles cm/km hours/minutes meters/feet dollars/euros apples/oranges boys/girls",
        ),
        {},
    ),
    "another order": (
        _order,
        {r"\\pm|\\in|\\neq?|≠|in Z": "values of either sign are unordered, and so are conditions"},
    ),
    "another end": (
        _swap("%s", "[/( ]/)"),
        {r"infty": "an infinite end is never included", r"\\[\[(]|\\max": "these are not intervals"},
    ),
    "another relation": (_swap("%s", "</>"), {}),
    "a strict relation": (
        _swap(r"(?:%s)(?![a-z])", "\\le/< \\leq/> \\ge/> \\geq/<"),
        {r"x\\cdot x": "two pieces meet"},
    ),
    "another index": (
        _once(r"_\w", lambda match: "_7"),
        {r"[Cc]_\d": "constants may have other names"},
    ),
    "another exponent": (_once(r"\^\d", lambda match: f"^{int(match[0][1]) + 1}"), {}),
    "no prime": (_once("'", lambda match: ""), {}),
    "another function": (_swap(r"(?:%s)(?![a-z])", r"\sin/\cos \tan/\cot \ln/\sqrt \cup/\cap"), {}),
}
"""Edits of one token, and the rules by which the edited text may still be equal, each with a pattern of such texts."""


@pytest.mark.parametrize("count", DRAWN)
@pytest.mark.parametrize("name", OTHER)
def test_differs_from_an_edit(name: str, count: int) -> None:
    """An edit of one token makes another answer, unless a rule that is named for this edit says otherwise."""
    edit, rules = OTHER[name]
    pairs = [(edit(text), text) for text in _draw(count)]
    equal = [pair for pair in pairs if pair[0] != pair[1] and _is_equal(*pair)]
    assert [pair for pair in equal if not any(re.search(rule, pair[1]) for rule in rules)] == []


WORDS = {"amu", "psi", "Cal", "Btu"}
"""Symbols that hold the name of a Greek letter or look like a word."""


def test_units_are_products(table: Table) -> None:
    """Letters that spell a unit are a product, too, in any order, and an answer leaves out only marked units."""
    prefixed = {before + name for row in UNITS for name in row.symbols.split() for before in ("", *row.prefixes)}
    letters = {name for name in prefixed if re.fullmatch("[A-Za-z]{2,3}", name)} - WORDS - NO_FACTORS
    assert len(letters) > 200
    for name in sorted(letters):
        product, turned = (" \\cdot ".join(order) for order in (name, name[::-1]))
        with table.case(name):
            assert compare(f"\\frac{{{name}}}{{2Q}}", f"\\frac{{{turned}}}{{2Q}}") is True
            assert compare(f"Q - {name}", f"Q - {product}") is True
            assert compare("2", f"2{name}") is (name in {*MARKED.split(), "pm"})  # 2 pm is a time


SAID = {
    "a decimal stands for what rounds to it": r"\d\.\d",
    "a decimal comma is read in an answer": r"^\d+,\d+$",
    "a percentage may be said as a fraction or as a number above one": r"%",
    "an answer may name its value, or say it as an equation": r"=",
    "an answer may add a unit whose letter is not marked": r"^\d+ \w+$",
    "a letter before a pair may be added": r"^[A-Z]\(",
}
"""Why an answer may be equal to a reference, but not the reference to the answer, by what one of the texts shows."""
THIRD = {
    **SAID,
    "a unit, noun or half of the day may be left out": r"\d[\s\\{~$A-Za-z]*[A-Za-z°\uac00-\ud7af]|[$€£]",
    "the natural numbers may begin with 0 or 1": r"mathbb",
    "(1, 2) is a point or an interval": r"[(\[].*,.*[)\]]|<|,",
    "1:2 is a ratio or a fraction": r"\d ?: ?\d",
    "a residue may leave out its modulus": r"mod",
}
"""Why three answers may not be equal although two pairs of them are, by what one of the texts shows."""
ASYMMETRIC, INTRANSITIVE = 60, 120
"""The most pairs, and triples, of the drawn references that are such exceptions."""
PARTS = 9
"""In which the different answers are compared, each with its own timeout: three answers, then an eighth of all."""
PAIRED = [pytest.param(40, id="some"), pytest.param(250, id="all", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("count", PAIRED)
def test_equality_has_no_direction_and_is_transitive(count: int) -> None:
    """What equals one reference equals what that equals, and they equal it, except by the named rules."""
    equal = {pair for pair in permutations(_draw(count), 2) if _is_equal(*pair)}
    one_way = [pair for pair in equal if pair[::-1] not in equal]
    assert [pair for pair in one_way if not _is_excused(pair, SAID)] == []
    others: dict[str, set[str]] = {}
    for one, other in equal | {pair[::-1] for pair in equal}:
        others.setdefault(one, set()).add(other)
    broken = [
        (one, middle, other)
        for middle, equals in others.items()
        for one, other in combinations(sorted(equals), 2)
        if other not in others[one]
    ]
    assert [three for three in broken if not _is_excused(three, THIRD)] == []
    assert (len(one_way) <= ASYMMETRIC, len(broken) <= INTRANSITIVE) == (True, True)


def _is_excused(texts: Iterable[str], rules: dict[str, str]) -> bool:
    return any(re.search(rule, text) for rule in rules.values() for text in texts)


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.nightly] * (part > 0)) for part in range(PARTS)]
)
def test_different_answers(part: int) -> None:
    """An answer equals at most one of 500 answers that are different from each other."""
    answers = DIFFERENT[:3] if part == 0 else DIFFERENT[part :: PARTS - 1]
    pairs = [(answer, other) for answer in answers for other in DIFFERENT if answer != other]
    assert [pair for pair in pairs if _is_equal(*pair)] == []
