"""A lock for imports inside functions, which load parts of the client on first use."""

from __future__ import annotations

# `logging` registers a hook that takes its own lock before a fork. Such hooks run in reverse order of registration, so
# import `logging` first: then a fork takes `import_lock` before the lock of `logging`. A thread that logs during an
# import takes the two locks in the same order, so the thread and the fork cannot deadlock.
import logging  # noqa: F401
import os
import threading

import_lock = threading.RLock()
"""Hold this lock during an import inside a function, so that a fork waits until the import ends. Otherwise, a child
that is forked while another thread imports a module could not import that module."""

os.register_at_fork(before=import_lock.acquire, after_in_parent=import_lock.release, after_in_child=import_lock.release)
