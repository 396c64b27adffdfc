"""Flint's precision, which all threads share, is restored after overlapping computations."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
from flint import ctx

from rewardstack_verifier import equivalent
from rewardstack_verifier.numbers.balls import precision

WAIT = 60.0
"""Seconds after which a test fails."""


def test_precision_of_threads() -> None:
    """Threads that overlap do not restore each other's precision."""
    before, entered, leave = ctx.prec, Event(), Event()

    def hold() -> None:
        with precision(1536):
            entered.set()
            leave.wait(WAIT)

    def overlap() -> None:
        with precision(384), precision(4096):
            pass

    holding, overlapping = Thread(target=hold), Thread(target=overlap)
    holding.start()
    assert entered.wait(WAIT)
    overlapping.start()
    leave.set()
    for thread in (holding, overlapping):
        thread.join(WAIT)
        assert not thread.is_alive()
    assert ctx.prec == before


def test_comparisons_in_threads() -> None:
    """Comparisons have the same verdicts in threads, and leave the precision."""
    before = ctx.prec
    pairs = [(rf"\sin^2({at}x)", rf"1-\cos^2({at + at % 2}x)") for at in range(1, 41)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda pair: equivalent(*pair).equal, pairs))
    assert found == [at % 2 == 0 for at in range(1, 41)]
    assert ctx.prec == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_precision_after_fork() -> None:
    """A child forked while another thread computes can compute, at the default precision."""
    before, entered, leave = ctx.prec, Event(), Event()

    def hold() -> None:
        with precision(1536):
            entered.set()
            leave.wait(WAIT)

    thread = Thread(target=hold)
    thread.start()
    assert entered.wait(WAIT)
    child = os.fork()
    if not child:
        works = ctx.prec == before and equivalent(r"\sqrt{8}x", r"2\sqrt{2}x").equal
        os._exit(0 if works else 1)
    leave.set()
    thread.join(WAIT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
