"""The version of the verdicts, which the keys of the result cache hold, is raised whenever a verdict changes."""

from __future__ import annotations

import json

from rewardstack_rules.functions.fingerprint import VERDICT_VERSION
from tests.rules.verdict_hashes import FILES, RECORD, hashes
from tests.support.table import Table

RECORDED = json.loads(RECORD.read_text())
REMEDY = "python -m tests.rules.verdict_hashes records them"


def test_recorded() -> None:
    """The verdicts of this version are recorded, for every file of cases and no other."""
    assert RECORDED["version"] == VERDICT_VERSION, f"VERDICT_VERSION has no record; {REMEDY}"
    assert sorted(RECORDED["files"]) == FILES, f"other files than were recorded; {REMEDY}"


def test_same_verdicts(table: Table) -> None:
    """Under one version the cases of a file have the labels that were recorded."""
    for name in FILES:
        with table.case(name):
            found, recorded = hashes(name), RECORDED["files"][name]
            assert found["cases"] == recorded["cases"], f"other cases than were recorded; {REMEDY}"
            assert found["labels"] == recorded["labels"], f"raise VERDICT_VERSION, then {REMEDY}"
