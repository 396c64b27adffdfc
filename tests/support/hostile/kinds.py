"""Collect all kinds of hostile requests."""

from __future__ import annotations

from random import Random

from tests.support.hostile import jobs, protocols, wire
from tests.support.hostile.attack import Attack, Make

KINDS: dict[str, Make] = {**protocols.KINDS, **jobs.KINDS, **wire.KINDS}
"""Generators of requests, by kind."""


def make(kind: str, seed: int, number: int) -> Attack:
    """Return a hostile request; the same arguments give the same request.

    Args:
        kind: one of `KINDS`.
        seed: seed of the run.
        number: number of the request among those of its kind.
    """
    return KINDS[kind](Random(f"{seed} {kind} {number}"))
