"""Runs chunks that wait for models in threads, while the worker's main thread scores chunks by rules."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from rewardstack.errors import ServiceError

MODEL_CHUNKS = 4
"""Number of chunks that may wait for models in a worker at the same time, in addition to one chunk for rules."""

log = logging.getLogger(__name__)


class Background:
    """Runs work in threads. Not thread-safe: call its methods from one thread only.

    Args:
        limit: maximum number of threads.
    """

    def __init__(self, limit: int = MODEL_CHUNKS) -> None:
        self._limit = limit
        self._running: dict[threading.Thread, Callable[[], None]] = {}

    def has_room(self) -> bool:
        """Return whether another thread may be started."""
        return len(self._running) < self._limit

    def start(self, work: Callable[[], object], give_up: Callable[[], None]) -> bool:
        """Start `work` in a thread; return False if the limit is reached.

        Args:
            work: called in the thread; its exceptions are logged.
            give_up: releases the claim to the work; called if the worker must end before the work is finished.
        """
        if not self.has_room():
            return False
        thread = threading.Thread(target=self._run, args=(work,), name="model chunk", daemon=True)
        self._running[thread] = give_up
        thread.start()
        return True

    def finish(self) -> None:
        """Wait for all threads; if an exception, such as a signal's, ends the waiting, give up unfinished work."""
        try:
            for thread in list(self._running):
                thread.join()
        except BaseException:
            for give_up in list(self._running.values()):
                with suppress(ServiceError):  # the lease of the chunk expires anyway
                    give_up()
            raise

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            log.exception("a chunk failed; another worker will retry it")
        finally:
            del self._running[threading.current_thread()]
