"""A lock for imports inside functions, which load parts of the client on first use."""

from __future__ import annotations

import logging  # noqa: F401 - its lock, which imports need, must be taken after this one: hooks before a fork run in reverse
import os
import threading

importing = threading.RLock()
"""Hold this lock during an import inside a function, so that no thread forks meanwhile: the child could not import."""

os.register_at_fork(before=importing.acquire, after_in_parent=importing.release, after_in_child=importing.release)
