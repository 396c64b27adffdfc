"""The memory that large requests leave behind in a server."""

from __future__ import annotations

import subprocess
import sys

import pytest

PREPARE = """
import ctypes, sys, threading
from rewardstack_rules.process import return_memory
if sys.argv[1] == "set":
    return_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
"""
THREADS = """
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
LARGE_BLOCKS = """
def in_heaps():
    class Counts(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "arena a b c d e f used free keepcost".split()]
    libc.mallinfo2.restype = Counts
    return libc.mallinfo2().arena
before = in_heaps()
libc.free(libc.malloc(20_000_000))
blocks = [(libc.malloc(2_000_000), libc.malloc(100)) for _ in range(10)]
[libc.free(large) for large, _ in blocks]
print(in_heaps() - before > 10_000_000)
"""


def run(program: str, how: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, with memory as servers have it set or not."""
    command = [sys.executable, "-c", PREPARE + program, how]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)


@pytest.mark.parametrize(("how", "shared"), [("set", True), ("unset", False)])
def test_threads_share_heaps(needs_process: None, how: str, shared: bool) -> None:
    """Threads have two heaps among them, where the C library would give them more."""
    done = run(THREADS, how)

    assert (done.stderr.count("Arena ") <= 2) == shared, done.stderr


@pytest.mark.parametrize(("how", "kept"), [("set", "False"), ("unset", "True")])
def test_large_blocks_are_given_back(needs_process: None, how: str, kept: str) -> None:
    """Once a large block was given back, others behind which small ones lie are no heap's either."""
    assert run(LARGE_BLOCKS, how).stdout.strip() == kept
