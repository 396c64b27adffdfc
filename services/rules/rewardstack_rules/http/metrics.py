"""`GET /metrics`: what is counted over all processes of the server."""

from __future__ import annotations

from flask import Flask, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from rewardstack_rules.metrics.scrape import counted


def install(app: Flask, directory: str, elsewhere: CollectorRegistry) -> None:
    """Has `app` answer `GET /metrics`.

    Args:
        app: the application.
        directory: where all processes keep their counts; empty where there is one process.
        elsewhere: what is counted elsewhere, and asked when it is wanted.
    """
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(directory, elsewhere))


def _metrics(directory: str, elsewhere: CollectorRegistry) -> Response:
    with counted(directory) as registry:
        own = generate_latest(registry)
    return Response(own + generate_latest(elsewhere), content_type=CONTENT_TYPE_LATEST)
