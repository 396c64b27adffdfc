"""A lock for imports inside functions, which load parts of the client on first use."""

from __future__ import annotations

import logging  # noqa: F401 - a fork must take its lock after `import_lock`; hooks run in reverse order of imports
import os
import threading

import_lock = threading.RLock()
"""Hold this lock during an import inside a function. A child that is forked during an import could not import."""

os.register_at_fork(before=import_lock.acquire, after_in_parent=import_lock.release, after_in_child=import_lock.release)
