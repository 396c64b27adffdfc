"""`GET /metrics`: the metrics of all processes of the server, for Prometheus."""

from __future__ import annotations

from flask import Flask, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from rewardstack_rules.metrics.scrape import counts_registry


def install(app: Flask, directory: str, external: CollectorRegistry) -> None:
    """Add `GET /metrics` to `app`.

    Args:
        app: the application.
        directory: directory in which all processes keep their counters; empty for a single process.
        external: collectors that query other services (cache, queue, isolated processes) for each scrape.
    """
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(directory, external))


def _metrics(directory: str, external: CollectorRegistry) -> Response:
    with counts_registry(directory) as registry:
        own = generate_latest(registry)
    return Response(own + generate_latest(external), content_type=CONTENT_TYPE_LATEST)
