"""A lock for imports inside functions, which load parts of the client on first use."""

from __future__ import annotations

import logging  # noqa: F401 - its fork hook must be registered before ours, so that a fork takes its lock after ours
import os
import threading

import_lock = threading.RLock()
"""Hold this lock during an import inside a function, so that a fork waits until the import ends. A child that is forked
in the middle of an import could not import."""

os.register_at_fork(before=import_lock.acquire, after_in_parent=import_lock.release, after_in_child=import_lock.release)
