"""Score the same sample twice concurrently, with a short and a long timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rewardstack import Request, score


def impatient_and_patient(
    source: str, response: str = "shared", release: Callable[[], object] = lambda: None
) -> tuple[str, str]:
    """Return the statuses of two concurrent calls for one sample, with timeouts of 0.5 s and 60 s.

    Args:
        source: `data_source` of the sample; scoring it should take longer than 0.5 s.
        response: response of the sample.
        release: called when the first call has ended.
    """
    statuses: dict[float, str] = {}

    def wait(timeout: float) -> None:
        statuses[timeout] = score([Request(source, response, "1", {"timeout": timeout})])[0].status

    impatient, patient = (threading.Thread(target=wait, args=(timeout,)) for timeout in (0.5, 60.0))
    impatient.start()
    patient.start()
    impatient.join()
    release()
    patient.join()
    return statuses[0.5], statuses[60.0]
