"""Code that server, worker and isolated processes share: how they start, a memory setting and an exit status."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import sysconfig

NOT_READY = 3
"""Exit status of a health check for a process that is alive but not ready; `health.sh` does not restart it."""

MALLOC = {
    -8: 2,  # M_ARENA_MAX: maximum number of heaps
    -3: 256 * 2**10,  # M_MMAP_THRESHOLD: blocks of at least this many bytes go back to the system when freed
    -1: 4 * 2**20,  # M_TRIM_THRESHOLD: free bytes that a heap keeps at its end
}
"""Parameters of glibc's `mallopt(3)` and their values."""

RUN_MODULE = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""A program that runs a module as `python -m` does, but does not search the working folder for modules.

Python 3.11 has the option `-P` for this. The folder is the empty entry of `sys.path`, which goes before anything is
imported that a file of the folder could replace.
"""


def module_command(module: str) -> list[str]:
    """Return the command that runs a module in a new interpreter; a `re.py` in the working folder is not imported.

    Give the new process `import_path` as PYTHONPATH if it is to import what this process can import.
    """
    return [sys.executable, "-c", RUN_MODULE, module]


def import_path(*more: str) -> str:
    """Return the folders of this process's `sys.path`, the standard library's first, as a value of PYTHONPATH.

    Args:
        more: folders to add at the end.
    """
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    standard = {*libraries, *(os.path.join(library, "lib-dynload") for library in libraries)}
    paths = sorted(map(os.path.abspath, sys.path), key=lambda path: path not in standard)
    return os.pathsep.join([*paths, *more])


def return_memory() -> None:
    """Make this process and its future forks return the memory of large requests to the system.

    By default, glibc has a heap for each thread, up to eight per core, and other threads cannot use the free memory of
    a heap. Also, after a large block is freed, glibc allocates further blocks of this size in a heap. One small block
    behind a freed block then keeps the freed memory from the system. Both make a server process grow for hours.
    With another C library, this function does nothing.
    """
    with contextlib.suppress(AttributeError):
        for option, value in MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
