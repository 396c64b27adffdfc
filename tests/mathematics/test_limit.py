"""What may take no longer than it is given."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from rewardstack_rules.mathematics import symbolic, verify
from rewardstack_rules.mathematics.limit import OutOfTimeError, within


def busy(seconds: float) -> None:
    """Computes for so many seconds of processor time, and holds up whatever it can."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        try:
            sum(range(1000))
        except Exception:  # noqa: BLE001 - as a library may
            continue


def test_ends_in_time() -> None:
    """Work ends when its time is over, though it catches every exception, and the timer and its handler are gone."""
    before = signal.getsignal(signal.SIGVTALRM)

    with pytest.raises(OutOfTimeError), within(0.02):
        busy(2)

    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


def test_quick_work() -> None:
    """Work that is done in time is not ended, then or later."""
    with within(0.05):
        busy(0.001)
    busy(0.1)


def test_no_limit_in_other_threads() -> None:
    """In another thread than the main one there is no limit: no signal comes there."""
    done: list[bool] = []

    def work() -> None:
        with within(0.01):
            busy(0.05)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == [True]


def test_undecided_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer over which math_verify runs out of time is wrong, and the verdict says that nothing decided it."""
    reference = "\\boxed{\\int f(x)\\,dx + \\sum_{n=1}^{\\infty} g(n)}"
    monkeypatch.setattr(symbolic, "_equal", lambda answer, expected: busy(2))
    monkeypatch.setattr(symbolic, "_parsed", lambda text: object())
    monkeypatch.setattr(symbolic, "warm_up", lambda: None)

    verdict = verify("\\boxed{\\int f(x)\\,dx + \\sum_{n=2}^{\\infty} h(n)}", [reference])

    assert (verdict.right, verdict.by) == (False, "undecided")
