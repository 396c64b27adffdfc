"""The tables of `rewardstack_verifier.lexicon`: each row is read as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewardstack_verifier.comparison.compare import compare
from rewardstack_verifier.lexicon.calendar import MONTHS, WEEKDAYS
from rewardstack_verifier.lexicon.currencies import CURRENCIES
from rewardstack_verifier.lexicon.numerals import LANGUAGES
from rewardstack_verifier.lexicon.phrases import SAME
from rewardstack_verifier.lexicon.units import UNITS
from rewardstack_verifier.reading.numerals import parse_number_words
from rewardstack_verifier.reading.units import currencies_by_sign, units_by_name
from tests.support.table import Table

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "verifier/rewardstack_verifier"


def test_units(table: Table) -> None:
    """Each symbol and name of a unit names what the others of its row name."""
    for at, row in enumerate(UNITS):
        with table.case(f"{at}: {row.symbols} | {row.names}"):
            names = [name for text in row[:2] for name in text.split()]
            assert set.intersection(*({(one.size, one.dimensions) for one in units_by_name(name)} for name in names))


def test_currencies(table: Table) -> None:
    """Each sign and code of a currency may stand before its amount, and means it."""
    for row in CURRENCIES:
        with table.case(row.code):
            for sign in (row[0], *row[1].split()):
                assert ((row[0], 1),) in {one.dimensions for one in currencies_by_sign(sign)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_numerals(language: str) -> None:
    """Ones, tens and hundreds are the numbers at whose places they stand."""
    row = LANGUAGES[language]
    for words, values in (
        (row.ones, range(200)),
        (row.tens, range(20, 100, 10)),
        (row.hundreds, range(200, 1000, 100)),
    ):
        for names, value in zip(words.split(), values, strict=False):
            assert [parse_number_words(name.split("-")) for name in names.split("|")] == [value] * len(names.split("|"))


@pytest.mark.parametrize("rows, length", [(MONTHS, 12), (WEEKDAYS, 7)])
def test_calendar(rows: dict[str, str], length: int) -> None:
    """Each language has all months, and all days."""
    assert {len(names.split()) for names in rows.values()} == {length}


def test_phrases(table: Table) -> None:
    """All phrases of a row say the same."""
    for common, row in SAME.items():
        with table.case(common):
            phrases = row.split("|")
            assert [one for one in phrases if compare(f"\\text{{{one}}}", f"\\text{{{common}}}") is not True] == []


def test_where_a_rule_goes() -> None:
    """The page for new rules names files, and tables in them, that there are."""
    page = (ROOT / "verifier/README.md").read_text().partition("## Where a new rule goes")[2]
    rows = [row for row in page.splitlines() if row.startswith("| ") and ".py`" in row]
    assert len(rows) >= 10
    for row in rows:
        files = [ROOM / name for name in re.findall(r"`([a-z_]+/[a-z_]+\.py)`", row)]
        assert all(file.is_file() for file in files), row
        said = "".join(file.read_text() for file in files)
        assert all(name in said for name in re.findall(r"`([A-Z]{4,})`", row)), row
