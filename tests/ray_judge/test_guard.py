"""What an engine has started ends with its process, even where that is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import eventually

ENGINE = """
import os, signal, subprocess, sys
from rewardstack.ray_judge.guard import guard_children
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
guard_children()
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("needs_process")
def test_killed() -> None:
    """A child of a process that is killed is gone soon after it."""
    done = subprocess.run([sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -9
    child = Path(f"/proc/{int(done.stdout)}/cmdline")
    eventually(lambda: not child.exists() or not child.read_bytes())
