"""Threads for chunks that wait for models or programs, while the worker's main thread scores other chunks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from rewardstack.errors import ServiceError

MODEL_CHUNKS = 4
"""Maximum number of chunks in threads at the same time, in addition to the chunk of the main thread."""

log = logging.getLogger(__name__)


class Background:
    """Runs work in threads. Not thread-safe: call its methods from one thread only.

    Args:
        limit: maximum number of threads.
    """

    def __init__(self, limit: int = MODEL_CHUNKS) -> None:
        self._limit = limit
        self._running: dict[threading.Thread, Callable[[], None]] = {}

    def has_capacity(self) -> bool:
        """Return whether fewer than `limit` threads are running."""
        return len(self._running) < self._limit

    def start(self, work: Callable[[], object], release: Callable[[], None]) -> bool:
        """Start `work` in a thread; return False if the limit is reached.

        If the system allows no more threads, release the chunk: it is sent again later, to this or another worker.

        Args:
            work: called in the thread; its exceptions are logged.
            release: called if the work cannot be started, or the worker must end before it is finished; releases the
                work's chunk.
        """
        if not self.has_capacity():
            return False
        thread = threading.Thread(target=self._run, args=(work,), name="model chunk", daemon=True)
        self._running[thread] = release
        try:
            thread.start()
        except RuntimeError as error:
            del self._running[thread]
            log.warning("%s; the chunk is released, and sent again later", error)
            release()
        return True

    def finish(self) -> None:
        """Wait for all threads.

        If an exception interrupts the wait, e.g. because of a signal, release the chunks of the threads that still run.
        """
        try:
            for thread in list(self._running):
                thread.join()
        except BaseException:
            for release in list(self._running.values()):
                with suppress(ServiceError):  # the lease of the chunk expires anyway
                    release()
            raise

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            log.exception("a chunk failed; another worker will retry it")
        finally:
            del self._running[threading.current_thread()]
