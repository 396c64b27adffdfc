"""What all processes of a server have counted together, at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from rewardstack_rules.metrics.files import reading


@contextmanager
def counted(directory: str) -> Iterator[CollectorRegistry]:
    """The registry that tells it; while this lasts no process's counts are moved.

    Args:
        directory: where all processes keep their counts; empty where there is one process.
    """
    if not directory:
        yield REGISTRY
        return
    registry = CollectorRegistry()
    MultiProcessCollector(registry, directory)
    with reading(Path(directory)):
        yield registry
