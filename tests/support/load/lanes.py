"""Define the load: which samples are sent, over which route, how often, and the right score of each."""

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
"""Number of different samples for the rules; they are sent repeatedly."""


@dataclass(frozen=True)
class Lane:
    """A steady stream of samples to one service.

    Args:
        name: name of the stream in the report.
        way: set of service URLs that the client uses, such as `direct` or `server` (a key of `Load`'s `addresses`).
        every: seconds between two batches.
        batch: number of samples in a batch.
        samples: samples to send in order; after the last one, the first is sent again.
    """

    name: str
    way: str
    every: float
    batch: int
    samples: Sequence[Known]


def rules(name: str = "rules", every: float = 0.25, batch: int = 16, seed: int = 1, count: int = RULES) -> Lane:
    """Return a lane of generated right and wrong answers to math problems, which are sent to the reward server.

    Args:
        name: name of the lane.
        every: seconds between two batches.
        batch: number of samples in a batch.
        seed: seed of the generator.
        count: number of different samples.
    """
    mix = make_samples(count, seed)
    known = [Known(Request("math", one.response, one.reference), float(one.right)) for one in mix]
    return Lane(name, "server", every, batch, known)


def write(lanes: Sequence[Lane], path: Path) -> None:
    """Write lanes to a JSON file for a trainer."""
    path.write_text(json.dumps([asdict(lane) for lane in lanes]), encoding="utf-8")


def read(path: Path) -> list[Lane]:
    """Return the lanes in a file that `write` has written."""
    return [_lane(record) for record in json.loads(path.read_text(encoding="utf-8"))]


def _lane(record: dict[str, Any]) -> Lane:
    samples = [Known(Request(**known.pop("request")), **known) for known in record.pop("samples")]
    return Lane(samples=samples, **record)
