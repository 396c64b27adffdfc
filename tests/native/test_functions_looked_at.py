"""Reward functions are loaded once before the reward server is restarted into them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from services.stack import processes
from services.stack.errors import StackError
from services.up.native import up
from services.up.native.programs import Program
from tests.native.nginx import load

pytestmark = pytest.mark.usefixtures("needs_process")

RULES = Program("rules", [sys.executable, "-m", "gunicorn"], 20)
CHILD = """
import pathlib, subprocess, time
subprocess.Popen(["sleep", "{seconds}"])
pathlib.Path(__file__).with_name("started").touch()
time.sleep({seconds})
"""


def test_too_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes its time is left to the reward server, and nothing stays of the attempt, nor of its children."""
    monkeypatch.setattr(up, "LOADING_SECONDS", 5.0)
    seconds = f"{time.time():.3f}"
    (tmp_path / "slow.py").write_text(CHILD.format(seconds=seconds))
    up.require_functions(load(REWARD_FUNCTIONS=tmp_path / "slow.py"), [RULES])
    assert (tmp_path / "started").exists()
    left = [process for process in psutil.process_iter() if seconds in " ".join(processes.command(process))]
    assert left == []


def test_wrong(tmp_path: Path) -> None:
    """One that cannot be loaded is an error with its reason."""
    (tmp_path / "wrong.py").write_text("import no_such_module\n")
    with pytest.raises(StackError, match="REWARD_FUNCTIONS: .*no_such_module"):
        up.require_functions(load(REWARD_FUNCTIONS=tmp_path / "wrong.py"), [RULES])
