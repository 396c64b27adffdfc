"""Read a consistent state of the counts of all processes of a server, for `/metrics` and the status page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from rewardstack_rules.metrics.files import merging_paused, nonempty


class _Processes(Collector):
    """Collects the counts of all processes of a server."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        """Return the sums over all processes. Skip empty files, which belong to processes that have just started."""
        files = nonempty(self._directory.glob("*.db"))
        return MultiProcessCollector.merge([str(file) for file in files], accumulate=True)


@contextmanager
def counts_registry(directory: str) -> Iterator[CollectorRegistry]:
    """Yield a registry with the counts of all processes of a server. Within the block, `metrics.files` merges nothing.

    Args:
        directory: directory in which all processes keep their counts; empty for a single process.
    """
    if not directory:
        yield REGISTRY
        return
    registry = CollectorRegistry()
    registry.register(_Processes(Path(directory)))
    with merging_paused(Path(directory)):
        yield registry
