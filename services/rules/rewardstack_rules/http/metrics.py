"""`GET /metrics`: what is counted over all processes of the server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flask import Flask, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from rewardstack_rules.metrics.files import reading


def install(app: Flask, directory: str, collectors: Sequence[Collector] = ()) -> None:
    """Has `app` answer `GET /metrics`.

    Args:
        app: the application.
        directory: where all processes keep their counts; empty where there is one process.
        collectors: of what is counted elsewhere.
    """
    elsewhere = CollectorRegistry()
    for collector in collectors:
        elsewhere.register(collector)
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(directory, elsewhere))


def _metrics(directory: str, elsewhere: CollectorRegistry) -> Response:
    own = _all_processes(directory) if directory else generate_latest()
    return Response(own + generate_latest(elsewhere), content_type=CONTENT_TYPE_LATEST)


def _all_processes(directory: str) -> bytes:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, directory)
    with reading(Path(directory)):
        return generate_latest(registry)
