"""Every kind of hostile request."""

from __future__ import annotations

from random import Random

from tests.support.hostile import jobs, protocols, wire
from tests.support.hostile.attack import Attack, Make

KINDS: dict[str, Make] = {**protocols.KINDS, **jobs.KINDS, **wire.KINDS}
"""What makes one, by its name."""


def make(kind: str, seed: int, number: int) -> Attack:
    """A hostile request, the same one for the same arguments.

    Args:
        kind: one of `KINDS`.
        seed: of the run.
        number: of the request among those of its kind.
    """
    return KINDS[kind](Random(f"{seed} {kind} {number}"))
