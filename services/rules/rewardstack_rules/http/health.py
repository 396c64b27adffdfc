"""Probes: `GET /health` shows whether the process answers, `GET /ready` whether it can score. They need no API key."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rewardstack_rules import __version__
from rewardstack_rules.http.context import context
from rewardstack_rules.http.waiting import waiting_requests

blueprint = Blueprint("health", __name__)


@blueprint.get("/health")
def health() -> Response:
    """Return 200 and the version."""
    return jsonify(status="ok", version=__version__)


@blueprint.get("/ready")
def ready() -> Response:
    """Return 200 if the server has rules and the isolated processes answer, else 503. `checks` has the details.

    A third check, `places`, is false while slow requests of at least one client would be refused
    (`WaitingRequests.is_full`). The server is ready even then, because it still answers fast requests.
    """
    here = context()
    required = {"registry": len(here.registry) > 0, "isolation": here.evaluator.is_isolation_responsive()}
    is_ready = all(required.values())
    response = jsonify(ready=is_ready, checks={**required, "places": not waiting_requests().is_full()})
    response.status_code = 200 if is_ready else 503
    return response
