"""The load: which samples are sent by which way, how often, and the right score of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.mix import make_samples
from rewardstack import Request
from tests.support.load.outcomes import Known

RULES = 4000
"""Samples for the rules; they come round again as well."""


@dataclass(frozen=True)
class Lane:
    """A steady stream of samples by one way.

    Args:
        name: of it.
        way: by which addresses the client finds the services: a name of the load's.
        every: seconds between two batches.
        batch: samples in one.
        samples: that are sent in turn, and from the first again after the last.
    """

    name: str
    way: str
    every: float
    batch: int
    samples: Sequence[Known]


def rules(name: str = "rules", every: float = 0.25, batch: int = 16, seed: int = 1, count: int = RULES) -> Lane:
    """Answers to problems of mathematics, right and wrong by construction, by way of the reward server.

    Args:
        name: of the lane.
        every: seconds between two batches.
        batch: samples in one.
        seed: of the generator.
        count: different samples.
    """
    mix = make_samples(count, seed)
    known = [Known(Request("math", one.response, one.reference), float(one.right)) for one in mix]
    return Lane(name, "server", every, batch, known)


def write(lanes: Sequence[Lane], path: Path) -> None:
    """Puts lanes into a file for a trainer."""
    path.write_text(json.dumps([asdict(lane) for lane in lanes]), encoding="utf-8")


def read(path: Path) -> list[Lane]:
    """The lanes in such a file."""
    return [_lane(record) for record in json.loads(path.read_text(encoding="utf-8"))]


def _lane(record: dict[str, Any]) -> Lane:
    samples = [Known(Request(**known.pop("request")), **known) for known in record.pop("samples")]
    return Lane(samples=samples, **record)
