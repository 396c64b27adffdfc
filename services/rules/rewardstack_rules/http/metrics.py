"""Counts every request, and `GET /metrics`, which tells what is counted over all processes of the server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from flask import Flask, Response, g
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from rewardstack_rules.http.request_log import QUIET, endpoint
from rewardstack_rules.metrics.counters import IN_PROGRESS, REQUESTS, SECONDS
from rewardstack_rules.metrics.files import reading


def install(app: Flask, directory: str, collectors: Sequence[Collector] = ()) -> None:
    """Counts every request of `app`, refused ones too, and answers `GET /metrics`.

    Args:
        app: the application; `request_log` is installed in it.
        directory: where all processes keep their counts; empty where there is one process.
        collectors: of what is counted elsewhere.
    """
    elsewhere = CollectorRegistry()
    for collector in collectors:
        elsewhere.register(collector)
    app.before_request(_begin)
    app.after_request(_finish)
    app.teardown_request(_end)
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(directory, elsewhere))


def _metrics(directory: str, elsewhere: CollectorRegistry) -> Response:
    own = _all_processes(directory) if directory else generate_latest()
    return Response(own + generate_latest(elsewhere), content_type=CONTENT_TYPE_LATEST)


def _all_processes(directory: str) -> bytes:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, directory)
    with reading(Path(directory)):
        return generate_latest(registry)


def _begin() -> None:
    g.in_progress = endpoint() not in QUIET
    if g.in_progress:
        IN_PROGRESS.inc()


def _finish(response: Response) -> Response:
    REQUESTS.labels(endpoint(), response.status_code).inc()
    SECONDS.labels(endpoint()).observe(time.monotonic() - g.started)
    return response


def _end(error: BaseException | None) -> None:
    if g.get("in_progress"):
        IN_PROGRESS.dec()
