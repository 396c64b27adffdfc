"""The table of failures in docs/performance.md: `python -m tests.client.fault_table` writes it from `RULES`."""

from __future__ import annotations

import re

from rewardstack.transport.faults import RULES, Rule
from tests.support.servers import ROOT

PAGE = ROOT / "docs/performance.md"
HEAD = "| failure | the request, if no other server is left | failures until skipped |\n| --- | --- | --- |\n"
NUMBERS = {0: "never", 3: "three", 10: "ten"}


def table() -> str:
    """Return the table."""
    return HEAD + "".join(map(_row, RULES.values()))


def _row(rule: Rule) -> str:
    skipped = f"{NUMBERS[rule.opens_after]} {rule.counted}".rstrip()
    return f"| {rule.failures} | {rule.request} | {skipped} |\n"


def main() -> None:
    """Replace the table in the page."""
    page = PAGE.read_text(encoding="utf-8")
    replaced, count = re.subn(rf"{re.escape(HEAD)}(\|.*\n)*", lambda _: table(), page)
    assert count == 1, "the page has no such table"
    PAGE.write_text(replaced, encoding="utf-8")


if __name__ == "__main__":
    main()
