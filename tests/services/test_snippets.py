"""Every block of code on a page is run by a test, or there is a reason why it is not."""

from __future__ import annotations

import re

from tests.support.snippets import ROOT, ROWS, snippets
from tests.support.table import Table

SNIPPETS = snippets()
WAYS = {"test", "here", "reason"}


def test_accounted_for(table: Table) -> None:
    """A block is run by a test or by the harness, or has a reason."""
    for snippet in SNIPPETS:
        with table.case(f"{snippet.page}:{snippet.line}"):
            row = snippet.row()
            assert row is not None, f"say in tests/cases/snippets.json who runs it, or why nobody can\n{snippet.text}"
            assert len(WAYS & set(row)) == 1


def test_no_row_is_left_over() -> None:
    """Each row has a block."""
    used = [snippet.row() for snippet in SNIPPETS]

    assert [row for row in ROWS if row not in used] == []


def test_tests_are_there(table: Table) -> None:
    """A test that a row names is there, in a file that reads the row's page."""
    for name in sorted({row["test"] for row in ROWS if "test" in row}):
        with table.case(name):
            path, _, function = name.partition("::")
            source = (ROOT / path).read_text()
            assert re.search(rf"^def {function}\(", source, re.MULTILINE)
            pages = {row["page"].rpartition("/")[2] for row in ROWS if row.get("test") == name}
            assert [page for page in pages if page not in source] == []
