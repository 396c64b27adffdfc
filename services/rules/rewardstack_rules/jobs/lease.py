"""Renew the lease of a chunk while a worker scores it. If the lease expires, another worker gets the chunk."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from rewardstack.errors import ServiceError
from rewardstack_rules.jobs.ledger import LEASE, Chunk, Ledger

log = logging.getLogger(__name__)


class Lease:
    """A context manager that renews a chunk's lease in a background thread.

    Args:
        ledger: renews leases in Redis.
        chunk: a chunk that this worker has claimed.
    """

    def __init__(self, ledger: Ledger, chunk: Chunk) -> None:
        self._ledger = ledger
        self._chunk = chunk
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def is_held(self) -> bool:
        """Return False once a renewal has found that another worker has the chunk, or that the job has ended."""
        return not self._lost.is_set()

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(LEASE / 3):
            try:
                if not self._ledger.renew(self._chunk):
                    self._lost.set()
                    return
            except ServiceError as error:
                log.warning("cannot renew the lease of a chunk: %s", error)
