"""What the server counts, and `GET /metrics`, which tells it over all its processes.

Under gunicorn each process writes to files in PROMETHEUS_MULTIPROC_DIR, which must be set before this is imported.
"""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Iterable, Sequence
from pathlib import Path

from flask import Flask, Response, g
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from rewardstack.score import Score
from rewardstack_rules.metrics_files import reading
from rewardstack_rules.request_log import endpoint

BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

REQUESTS = Counter("rewardstack_requests_total", "Requests answered.", ["endpoint", "code"])
SECONDS = Histogram("rewardstack_request_seconds", "Time from a request to its answer.", ["endpoint"], buckets=BUCKETS)
ITEMS = Counter("rewardstack_items_total", "Samples scored, by who scored them and how it ended.", ["route", "status"])
CACHED = Counter("rewardstack_cache_hits_total", "Samples whose score was read from the cache.", ["route"])


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
    app.after_request(_finish)
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(directory, elsewhere))


def count_scores(scores: Iterable[Score]) -> None:
    """Counts the samples of a call."""
    # One step a counter and not one a sample: each of them writes to a file.
    counts = Counts((score.source or "none", score.status, score.cached) for score in scores)
    for (route, status, cached), count in counts.items():
        ITEMS.labels(route, status).inc(count)
        if cached:
            CACHED.labels(route).inc(count)


def _metrics(directory: str, elsewhere: CollectorRegistry) -> Response:
    own = _all_processes(directory) if directory else generate_latest()
    return Response(own + generate_latest(elsewhere), content_type=CONTENT_TYPE_LATEST)


def _all_processes(directory: str) -> bytes:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, directory)
    with reading(Path(directory)):
        return generate_latest(registry)


def _finish(response: Response) -> Response:
    REQUESTS.labels(endpoint(), response.status_code).inc()
    SECONDS.labels(endpoint()).observe(time.monotonic() - g.started)
    return response
