"""Score the same sample twice concurrently, with a short and a long timeout."""

from __future__ import annotations

import threading
import time

from rewardstack import Request, score


def impatient_and_patient(source: str) -> dict[str, tuple[str, float]]:
    """Return the status and the seconds of two concurrent calls for one sample, by `impatient` and `patient`.

    The timeouts are 50 ms and 5 s.

    Args:
        source: `data_source` of the sample; scoring it should take longer than 50 ms and less than 5 s.
    """
    results: dict[str, tuple[str, float]] = {}

    def wait(name: str, timeout: float) -> None:
        started = time.monotonic()
        (one,) = score([Request(source, "shared", "1", {"timeout": timeout})])
        results[name] = one.status, time.monotonic() - started

    impatient = threading.Thread(target=wait, args=("impatient", 0.05))
    patient = threading.Thread(target=wait, args=("patient", 5.0))
    impatient.start()
    time.sleep(0.02)
    patient.start()
    impatient.join()
    patient.join()
    return results
