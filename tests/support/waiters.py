"""Score the same sample twice concurrently, with a short and a long timeout."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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

    def status(timeout: float) -> str:
        return score([Request(source, response, "1", {"timeout": timeout})])[0].status

    with ThreadPoolExecutor(2) as pool:
        impatient, patient = pool.submit(status, 0.5), pool.submit(status, 60.0)  # the first one expires
        first = impatient.result()
        release()
        return first, patient.result()
