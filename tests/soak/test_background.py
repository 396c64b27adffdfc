"""The background load beside the trainers."""

from __future__ import annotations

import threading
import time

import pytest

from tests.soak.background import Hostile, meanwhile
from tests.support.load.phases import Phase
from tests.support.servers import free_port
from tests.support.waiting import eventually


@pytest.mark.parametrize(("name", "wrong"), [("nothing", True), ("kill a server", False)])
def test_bad_answers(name: str, wrong: bool) -> None:
    """No answer to a hostile request is a fault once, but while something was done to the stack it never is."""
    hostile, begun = Hostile(f"http://127.0.0.1:{free_port()}"), time.monotonic()
    with meanwhile(hostile.work):
        eventually(lambda: hostile.counts[0] > 0)
    ended = time.monotonic()

    assert any("refused" in fault for fault in hostile.faults([Phase(name, begun, ended, ended, False)])) is wrong
    assert not list(hostile.faults([]))


def test_what_fails_meanwhile_is_raised() -> None:
    """A failure of the background load is raised."""

    def fail(_: threading.Event) -> None:
        raise ValueError("seen")

    with pytest.raises(ValueError, match="seen"), meanwhile(fail):
        pass
