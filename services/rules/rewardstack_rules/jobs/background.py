"""Chunks that wait for models, in threads beside a worker's own, which scores rules meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from rewardstack.errors import ServiceError

MODEL_CHUNKS = 4
"""Chunks for models that a worker has at the same time, beside one for rules."""

log = logging.getLogger(__name__)


class Background:
    """Runs work in threads; for one thread that starts it.

    Args:
        limit: how much of it runs at the same time.
    """

    def __init__(self, limit: int = MODEL_CHUNKS) -> None:
        self._limit = limit
        self._running: dict[threading.Thread, Callable[[], None]] = {}

    def has_room(self) -> bool:
        """Return whether `start` would start something."""
        return len(self._running) < self._limit

    def start(self, work: Callable[[], object], give_up: Callable[[], None]) -> bool:
        """Start `work`; return whether there was room.

        Args:
            work: what is run; what it raises is logged.
            give_up: undoes the claim to what has not ended when the worker must end.
        """
        if not self.has_room():
            return False
        thread = threading.Thread(target=self._run, args=(work,), name="model chunk", daemon=True)
        self._running[thread] = give_up
        thread.start()
        return True

    def finish(self) -> None:
        """Wait until all has ended; give up what has not if a signal ends the worker meanwhile."""
        try:
            for thread in list(self._running):
                thread.join()
        except BaseException:
            for give_up in list(self._running.values()):
                with suppress(ServiceError):  # then its lease ends by itself
                    give_up()
            raise

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            log.exception("a chunk is left to another worker")
        finally:
            del self._running[threading.current_thread()]
