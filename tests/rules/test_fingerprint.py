"""A reward function's fingerprint changes with everything that its values depend on, and with nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewardstack_rules.functions import fingerprint as module
from rewardstack_rules.functions.fingerprint import fingerprint

SOURCE = """
import json
import numpy
from near.helper import one
import around.inner, bare.inner
import rewardstack_rules.http.app

value = 1
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that imports a library, packages beside it (`bare` has no `__init__.py`), and through one a module."""
    for name in ("around/__init__.py", "around/inner.py", "bare/inner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "__init__.py").write_text("")
    (tmp_path / "near" / "helper.py").write_text("from . import deep\none = 1\n")
    (tmp_path / "near" / "deep.py").write_text("two = 2\n")
    (tmp_path / "far.py").write_text("three = 3\n")
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return path


def test_same_again(file: Path) -> None:
    """The same sources and libraries give the same fingerprint."""
    assert fingerprint(file) == fingerprint(file)


@pytest.mark.parametrize(
    "name",
    [
        *("mine.py", "near/helper.py", "near/deep.py", "near/__init__.py"),
        *("around/__init__.py", "around/inner.py", "bare/inner.py"),
    ],
)
def test_source(file: Path, name: str) -> None:
    """It changes with the file and with every local module behind it."""
    before = fingerprint(file)
    changed = file.parent / name
    changed.write_text(changed.read_text() + "# changed\n")

    assert fingerprint(file) != before


def test_unrelated_source(file: Path) -> None:
    """It does not change with a module that the file does not import."""
    before = fingerprint(file)
    (file.parent / "far.py").write_text("three = 4\n")

    assert fingerprint(file) == before


@pytest.mark.parametrize(
    ("change", "patched"),
    [
        ("VERDICT_VERSION", "another"),
        ("_version", lambda name: "0.0" if name == "numpy" else "1"),
        ("platform", type("platform", (), {"python_version": staticmethod(lambda: "2.7")})),
    ],
)
def test_versions(file: Path, monkeypatch: pytest.MonkeyPatch, change: str, patched: Any) -> None:
    """It changes with the version of a library that is imported, with Python's, and with that of the verdicts."""
    before = fingerprint(file)
    monkeypatch.setattr(module, change, patched)

    assert fingerprint(file) != before


def test_nothing_is_imported(file: Path) -> None:
    """Taking it does not run what it reads."""
    (file.parent / "near" / "deep.py").write_text("raise RuntimeError\n")

    fingerprint(file)
