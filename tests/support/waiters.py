"""Two who wait for one call, one of them impatient."""

from __future__ import annotations

import threading
import time

from rewardstack import Request, score


def impatient_and_patient(source: str) -> dict[str, tuple[str, float]]:
    """Status and seconds of two calls for one sample: the first gives up after 50 ms, the second after 5 s.

    Args:
        source: the sample's `data_source`; to be scored in between.
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
