"""What the server counts, and `GET /metrics`, which tells it over all its processes.

Under gunicorn each process writes to files in PROMETHEUS_MULTIPROC_DIR, which must be set before this is imported.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from flask import Flask, Response, g, request
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from rewardstack.score import Score

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

REQUESTS = Counter("rewardstack_requests_total", "Requests answered.", ["endpoint", "code"])
SECONDS = Histogram("rewardstack_request_seconds", "Time from a request to its answer.", ["endpoint"], buckets=BUCKETS)
ITEMS = Counter("rewardstack_items_total", "Samples scored, by who scored them and how it ended.", ["route", "status"])
CACHED = Counter("rewardstack_cache_hits_total", "Samples whose score was read from the cache.", ["route"])


def install(app: Flask, directory: str) -> None:
    """Counts every request of `app`, refused ones too, and answers `GET /metrics`.

    Args:
        app: the application.
        directory: where all processes keep their counts; empty where there is one process.
    """
    app.before_request(_start)
    app.after_request(_finish)
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(directory))


def count_scores(scores: Iterable[Score]) -> None:
    """Counts the samples of a call."""
    for score in scores:
        route = score.source or "none"
        ITEMS.labels(route, score.status).inc()
        if score.cached:
            CACHED.labels(route).inc()


def _metrics(directory: str) -> Response:
    registry = REGISTRY
    if directory:
        registry = CollectorRegistry()
        MultiProcessCollector(registry, directory)
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _start() -> None:
    g.started = time.monotonic()


def _finish(response: Response) -> Response:
    endpoint = request.url_rule.rule if request.url_rule else "unknown"
    REQUESTS.labels(endpoint, response.status_code).inc()
    if "started" in g:
        SECONDS.labels(endpoint).observe(time.monotonic() - g.started)
    return response
