"""The list of heavy targets, and how CI chooses among them."""

from __future__ import annotations

import re

from tests.nightly.__main__ import ROOT, Target, choose_smoke, load


def test_targets_exist() -> None:
    """Each target is one of the Makefile's, and its folders exist."""
    makefile = (ROOT / "Makefile").read_text()
    for target in load():
        assert re.search(rf"^{target.target}:", makefile, re.MULTILINE), target
        assert [folder for folder in target.folders if not (ROOT / folder).exists()] == [], target


def test_documented() -> None:
    """CONTRIBUTING's table has a row for each target, with what it proves and its folders."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for target in load():
        folders = ", ".join(f"`{folder}`" for folder in target.folders)
        assert f"| {folders} | `make {target.target}` | {target.proves} |" in page


def test_choice() -> None:
    """Changed folders choose targets in order until the estimates reach the budget; the others have a reason."""
    targets = [
        Target("first", "", ["a"], "smoke=1", 40),
        Target("untouched", "", ["b"], "smoke=1", 10),
        Target("whole", "", ["a/deep"]),
        Target("long", "", ["a"], "smoke=1", 90),
        Target("file", "", ["Makefile"], "", 20),
    ]

    chosen, left_out = choose_smoke(targets, ["a/deep/x.py", "Makefile", "ab/c"], budget=100)

    assert [target.target for target in chosen] == ["first", "file"]
    reasons = [(target.target, reason) for target, reason in left_out]
    assert reasons == [("whole", "it has no smoke variant"), ("long", "no time left of 100 s")]
