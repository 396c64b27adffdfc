"""Documents name one another rightly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from services.stack.rundir import ROOT
from tests.support.snippets import block
from tests.support.table import Table

DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)", re.MULTILINE)


def text(path: str) -> str:
    """A document without its blocks of code."""
    return BLOCK.sub("", (ROOT / path).read_text(encoding="utf-8"))


def anchors(path: str) -> Iterator[str]:
    """Those of a document's headings, as GitHub makes them."""
    for heading in HEADING.findall(text(path)):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_links(table: Table) -> None:
    """Every link within the tree leads to a file that is there, and to a heading that it has."""
    for document in (str(path.relative_to(ROOT)) for path in DOCUMENTS):
        with table.case(document):
            assert broken_links(document) == []


def broken_links(document: str) -> list[str]:
    """The links of a document that lead nowhere."""
    broken = []
    for link in LINK.findall(text(document)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / document).parent / name if name else ROOT / document
        if not target.exists() or (anchor and anchor not in anchors(str(target))):
            broken.append(link)
    return broken


def test_folders() -> None:
    """The folders of the map in CONTRIBUTING.md are there."""
    named = re.findall(r"^([\w/]+/)(?: {2,}(\w+/))?", block("CONTRIBUTING.md", "", "verifier/"), re.MULTILINE)
    paths = [path for first, further in named for path in (first, first.split("/")[0] + "/" + further)]
    assert len(named) > 10 and [path for path in paths if not (ROOT / path).is_dir()] == []
