"""The version of the verdicts, which the keys of the result cache hold, is raised whenever a verdict changes."""

from __future__ import annotations

import json

import pytest

from rewardstack_rules.functions.fingerprint import VERDICT_VERSION
from tests.rules.verdict_hashes import FILES, RECORD, hashes

RECORDED = json.loads(RECORD.read_text())
REMEDY = "python -m tests.rules.verdict_hashes records them"


def test_recorded() -> None:
    """The verdicts of this version are recorded, for every file of cases and no other."""
    assert RECORDED["version"] == VERDICT_VERSION, f"VERDICT_VERSION has no record; {REMEDY}"
    assert sorted(RECORDED["files"]) == FILES, f"other files than were recorded; {REMEDY}"


@pytest.mark.parametrize("name", FILES)
def test_same_verdicts(name: str) -> None:
    """Under one version the cases of a file have the verdicts that were recorded."""
    found, recorded = hashes(name), RECORDED["files"][name]
    assert found["cases"] == recorded["cases"], f"other cases than were recorded; {REMEDY}"
    assert found["verdicts"] == recorded["verdicts"], f"raise VERDICT_VERSION, then {REMEDY}"
