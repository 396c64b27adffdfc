"""`docs/glossary.md` has the words that modules are named with."""

from __future__ import annotations

import re

import pytest

from rewardstack.routing.routes import RULES
from tests.test_rooms import MODULES, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
MOST_LINES = 31
PLAIN = """
addresses api app arguments audit auth base batches body calls catalogue causes characters check client cluster codec
columns commands compare conf config connection console context cost counters daemon dataset delivery depth descriptors
directory document durability errors evaluate evaluation event exchange explain explanation factory fields figures files
finding format gathering get health healthcheck http init interrupts json launch legacy lexer limits lists logs loop
main messages metrics models names options output page parquet parser pieces plots prepare process progress question
rate recorder recording refusals reply report resolver responses ring rows run schemas scrape scripts secret server
service settings snapshot standing start state steps store stream submission submit syntax table terminal terms thread
tokens trail turns types undone upload visible warming words
"""
"""Plain English, and words of Python and of HTTP, that mean here what they mean everywhere."""
FOREIGN = """
ai align anything areal asgi eval gunicorn gym inspect inspect_ai lighteval llm lm math mia ms nemo openapi openrlhf
regex rm skyrl slime swift trl verifiers verl vllm
"""
"""Names of others."""
MATHEMATICS = """
angles approximations atoms balls bases bounds brackets calendar commas congruences constants currencies
decimals digits doubts endless environments equality equations expressions extract families functions grammar
inequalities intervals languages numerals parameters phrases piecewise plain points quantities rational ratios
regions remarks residues separation series sexagesimal simplified spans stated statements sums table totals tree
units vectors verification
"""
"""Words of mathematics, and of what is done with it."""


def words(text: str) -> set[str]:
    """The words of a text, as small letters, in the singular as far as a last `s` makes the plural."""
    return {word.removesuffix("s") for word in re.findall(r"[a-z]+", text.lower())}


def named() -> set[str]:
    """The words that the glossary explains: those in bold."""
    return set().union(*map(words, re.findall(r"\*\*(.+?)\*\*", GLOSSARY.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("stem", sorted({path.stem for _, path in MODULES} - set(RULES)))
def test_names_of_modules(stem: str) -> None:
    """A module is named with words of the glossary, or with plain ones."""
    assert words(stem) <= named() | words(f"{PLAIN} {FOREIGN} {MATHEMATICS}")


def test_length() -> None:
    """The glossary is read in a minute."""
    assert len(GLOSSARY.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
