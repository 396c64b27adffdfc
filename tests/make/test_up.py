"""What `make up` says about its own start."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load
from services.up import up


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """The directory of a stack that was started with the shipped settings and a key."""
    made = RunDir(str(tmp_path))
    made.make()
    up._save(load(ROOT, {"REWARD_SERVER_API_KEYS": "sesame-of-the-tests-1", "WORKERS": "2"}), made)
    return made


def test_changed_settings(run: RunDir) -> None:
    """Each setting that differs from the last start is named with both values, a secret with none."""
    now = load(ROOT, {"REWARD_SERVER_API_KEYS": "sesame-of-the-tests-2", "REWARD_PORT": "7000", "JUDGE_MODEL": "m"})
    lines = up.changed_settings(now, run)
    assert sorted(lines) == [
        "JUDGE_MODEL: empty → m",
        "REWARD_PORT: 6000 → 7000",
        "REWARD_SERVER_API_KEYS: changed",
        "WORKERS: 2 → 1",
    ]
    assert "sesame" not in run.settings.read_text()
    up._save(now, run)
    assert up.changed_settings(now, run) == []


def test_first_start(tmp_path: Path) -> None:
    """A first start, or a file of the last one that cannot be read, is compared with nothing."""
    run = RunDir(str(tmp_path))
    assert up.changed_settings(load(ROOT, {}), run) == []
    run.make()
    run.settings.write_text("{")
    assert up.changed_settings(load(ROOT, {}), run) == []
