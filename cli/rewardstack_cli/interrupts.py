"""Handle Ctrl-C and SIGTERM: the first signal asks the run to stop cleanly, the second one cancels it."""

from __future__ import annotations

import asyncio
import signal
from types import TracebackType
from typing import Any

from rewardstack_cli.console import say

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Context manager that handles `SIGNALS` on the running event loop, in place of Python's handlers.

    The first signal is only stored in `received`, so that the run can stop cleanly. A second signal cancels the task
    that entered the context.

    Attributes:
        received: number of the first signal; 0 if there was none.
    """

    def __init__(self) -> None:
        self.received = 0

    def __enter__(self) -> Interrupts:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in SIGNALS:
            self._loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if self.received and self._task is not None:
            self._task.cancel()
            return
        self.received = number
        say("stopping: waiting for the rows in flight; interrupt again to drop them")
