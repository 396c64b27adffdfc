"""The result of the readiness probe, which many callers share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from rewardstack_rules.scoring.shared_probe import SharedProbe


def test_callers_of_a_slow_probe() -> None:
    """While one thread waits for the probe, the others get the last result at once."""
    results, probing, goes_on = [True], threading.Event(), threading.Event()

    def probe() -> bool:
        if len(results) == 2:
            probing.set()
            goes_on.wait()
        return results[-1]

    latest = SharedProbe(probe, 0.0)
    assert latest.get()
    results.append(False)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(latest.get)
        probing.wait()
        assert [latest.get() for _ in range(3)] == [True] * 3
        goes_on.set()
        assert first.result() is False
    assert latest.get() is False


def test_a_result_is_kept() -> None:
    """A recent result is used again, also by callers that came together before there was any."""
    probed: list[int] = []

    def probe() -> bool:
        probed.append(1)
        return True

    latest = SharedProbe(probe, 3600.0)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: latest.get(), range(50)))
    assert len(probed) == 1
