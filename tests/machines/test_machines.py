"""The table of machines: its data, what is said of a step, and what a machine is told of this one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.stack.rundir import ROOT
from services.stack.venv import read_pip_settings
from tests.machines import images, situation
from tests.machines.situation import Step

COMMANDS = ("JUDGE=off EMBEDDING=off make up", "make up")
"""The two that README has to start the stack."""


def test_every_situation_types_one_of_the_commands_that_readme_has() -> None:
    """Nobody has to know more than README's two commands, and no two rows have one name."""
    situations = situation.load()
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert all(any(line.split("#")[0].strip() == command for line in readme) for command in COMMANDS)
    names = [one.name for one in situations]
    assert len(set(names)) == len(names)
    for one in situations:
        assert any(command in step.type for step in one.steps for command in COMMANDS), one.name


def test_the_page_names_every_kind_of_machine_that_is_tried() -> None:
    """Nothing is said to be tried that is not, and nothing that is tried is left out."""
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8").partition("## Tested machines")[2]
    first = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(first))) == {one.name.partition("-")[0] for one in situation.load()}


def test_three_situations_are_for_ci() -> None:
    """CI has the time for three of them."""
    assert len(situation.choose(situation.load(), [], smoke=True)) == 3


@pytest.mark.parametrize(
    ("status", "output", "fault"),
    [
        (0, "a \x1b[1mlong\x1b[0m\r\n   line\r\n", ""),
        (2, "a long line", "exit 2 instead of 0"),
        (None, "a long line", "no end after 600 s"),
        (0, "a lo\nng line", "not seen: a long line"),
        (0, "a long line, and a bad one", "seen: a bad one"),
        (0, "a long line\nTraceback (most recent call last):", "seen: Traceback (most recent call last)"),
    ],
)
def test_what_is_not_as_expected_is_said(status: int | None, output: str, fault: str) -> None:
    """A line may be broken between words and coloured, never inside a word; a traceback is never expected."""
    assert situation.fault(Step("make up", see=["a long line"], never=["a bad one"]), status, output) == fault


def test_what_is_left_out_is_not_as_expected() -> None:
    """The verdict counts what was typed, and says apart from it what this machine cannot have."""
    assert situation.verdict({"a": True, "b": True}) == "VERDICT: 2 of 2 as expected"
    assert situation.verdict({"a": True, "b": False, "c": None}) == "VERDICT: 1 of 2 as expected, not b, 1 left out"


def test_situations_are_chosen_by_their_first_letters() -> None:
    """A name or its beginning chooses; one that nothing is called says what there is."""
    situations = situation.load()
    assert {one.name for one in situation.choose(situations, ["disk"], False)} == {"disk-full", "disk-small"}
    with pytest.raises(ValueError, match="no situation is called floppy; there are bookworm-root, "):
        situation.choose(situations, ["floppy"], False)


def test_a_machine_is_told_what_pip_is_told_here(tmp_path: Path) -> None:
    """The environment beats the files; what they name is shown, an index with what stands beside it."""
    (tmp_path / "index/simple").mkdir(parents=True)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "limits.txt").touch()
    listed = f""":env:.default-timeout='180'
:env:.find-links='{tmp_path}/wheels'
global.cert='/somewhere/authorities.crt'
global.constraint='{tmp_path}/limits.txt'
global.extra-index-url='file://{tmp_path}/index/simple file:///nowhere/simple'
global.find-links='/nowhere'
install.user='true'
"""
    settings = read_pip_settings(listed)
    assert images.named_paths(settings) == [tmp_path / "index", tmp_path / "limits.txt", tmp_path / "wheels"]
    assert images.pip_file(settings, "/there.crt").splitlines() == [
        "[global]",
        "cert = /there.crt",
        f"constraint = {tmp_path}/limits.txt",
        f"extra-index-url = file://{tmp_path}/index/simple file:///nowhere/simple",
        f"find-links = {tmp_path}/wheels",
        "user = true",
        "default-timeout = 180",
    ]
