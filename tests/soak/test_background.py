"""What goes on beside the trainers."""

from __future__ import annotations

import threading
import time

import pytest

from tests.soak.background import Hostile, meanwhile
from tests.support.load.phases import Phase
from tests.support.servers import free_port
from tests.support.waiting import eventually


def test_bad_answers() -> None:
    """No answer to a hostile request is a fault, but while something was done to the stack."""
    hostile, begun = Hostile(f"http://127.0.0.1:{free_port()}"), time.monotonic()
    with meanwhile(hostile.work):
        eventually(lambda: hostile.counts[0] > 0)
    ended = time.monotonic()

    assert all("refused" in fault for fault in hostile.faults([Phase("nothing", begun, ended, ended, excused=False)]))
    assert list(hostile.faults([]))
    assert not list(hostile.faults([Phase("kill a server", begun, ended, ended, excused=False)]))


def test_what_fails_meanwhile_is_raised() -> None:
    """What goes on beside does not fail unseen."""

    def fail(_: threading.Event) -> None:
        raise ValueError("seen")

    with pytest.raises(ValueError, match="seen"), meanwhile(fail):
        pass
