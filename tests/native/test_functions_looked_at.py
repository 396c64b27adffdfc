"""Reward functions are loaded once before the reward server is restarted into them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.stack import processes
from services.stack.errors import StackError
from services.up.native import up
from services.up.native.programs import Program
from tests.native.nginx import load
from tests.support.waiting import eventually

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
    started, communicate = tmp_path / "started", subprocess.Popen.communicate

    def communicate_briefly(process: subprocess.Popen[str], input: None = None, timeout: float = 0) -> tuple[str, str]:
        assert timeout == up.FUNCTIONS_SECONDS
        eventually(started.exists)
        return communicate(process, input, 0.1)  # expires

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate_briefly)
    seconds = f"{time.time():.3f}"
    (tmp_path / "slow.py").write_text(CHILD.format(seconds=seconds))
    up.require_functions(load(REWARD_FUNCTIONS=tmp_path / "slow.py"), [RULES])
    assert started.exists()
    left = [process for process in processes.all_processes() if seconds in " ".join(process.command)]
    assert left == []


def test_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be loaded is an error with its reason."""
    monkeypatch.setattr(up, "FUNCTIONS_SECONDS", 100.0)
    (tmp_path / "wrong.py").write_text("import no_such_module\n")
    with pytest.raises(StackError, match="REWARD_FUNCTIONS: .*no_such_module"):
        up.require_functions(load(REWARD_FUNCTIONS=tmp_path / "wrong.py"), [RULES])
