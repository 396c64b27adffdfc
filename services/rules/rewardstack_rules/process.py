"""Helpers for all processes of this package: the command and import path to start a process, and memory settings."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import sysconfig

NOT_READY = 3
"""Exit status of a health check if the server is alive, but not ready. `health.sh` does not end such a server."""

MALLOC = {
    -8: 2,  # M_ARENA_MAX: maximum number of heaps
    -3: 256 * 2**10,  # M_MMAP_THRESHOLD: blocks of at least this many bytes go back to the system when freed
    -1: 4 * 2**20,  # M_TRIM_THRESHOLD: maximum number of free bytes that a heap keeps at its end
}
"""Parameters of glibc's `mallopt(3)` and their values."""

RUN_MODULE = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""A program that runs a module as `python -m` does, but does not search the working folder for modules.

Python 3.10 does not have the option `-P` for this. The working folder is the empty entry of `sys.path`. The program
removes this entry before it imports from any folder, so that no file in the working folder can replace a module.
"""


_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
STANDARD = {*_LIBRARIES, *(os.path.join(library, "lib-dynload") for library in _LIBRARIES)}
"""Folders of the standard library. They are found at import, because `sysconfig` is not thread-safe."""


def module_command(module: str) -> list[str]:
    """Return the command that runs a module in a new interpreter, without imports from the working folder.

    To let the new process import everything that this process can import, set its PYTHONPATH to `import_path()`.
    """
    return [sys.executable, "-c", RUN_MODULE, module]


def import_path(*more: str) -> str:
    """Return this process's `sys.path` as a value of PYTHONPATH, with the folders of the standard library first.

    Args:
        more: folders to add at the end.
    """
    paths = sorted(map(os.path.abspath, sys.path), key=lambda path: path not in STANDARD)
    return os.pathsep.join([*paths, *more])


def return_memory() -> None:
    """Make this process and its future forks return freed memory to the system. Without glibc, do nothing.

    Two defaults of glibc make a server process grow for hours. First, glibc creates up to eight heaps per core, and a
    thread cannot use free memory in another thread's heap. Second, once a large block is freed, glibc allocates later
    blocks of that size in a heap. A single small block at the heap's end then keeps these blocks from being returned.
    """
    with contextlib.suppress(AttributeError):
        for option, value in MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
