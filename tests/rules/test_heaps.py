"""The memory that threads of a server leave behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from rewardstack_rules.process import share_heaps
if sys.argv[1] == "shared":
    share_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)
def take():
    together.wait()
    libc.malloc(10_000)
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.malloc_stats()
"""


@pytest.mark.parametrize(("how", "shared"), [("shared", True), ("alone", False)])
def test_threads_share_heaps(needs_process: None, how: str, shared: bool) -> None:
    """Threads have two heaps among them, where the C library would give them more."""
    said = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, timeout=60)

    assert (said.stderr.count("Arena ") <= 2) == shared, said.stderr
