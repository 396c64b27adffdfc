"""`GET /health`: the process answers. `GET /ready`: it can score. Both need no key, so they report nothing else."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rewardstack_rules import __version__
from rewardstack_rules.http.context import context
from rewardstack_rules.http.waiting import waiting_requests

blueprint = Blueprint("health", __name__)


@blueprint.get("/health")
def health() -> Response:
    """Return 200 while requests are answered."""
    return jsonify(status="ok", version=__version__)


@blueprint.get("/ready")
def ready() -> Response:
    """Return 200 if there are rules and isolated processes answer, else 503; `checks` has the details.

    If the wait queue is full, `places` is false, but the server stays ready: it answers requests that are fast.
    """
    here = context()
    needed = {"registry": len(here.registry) > 0, "isolation": here.evaluator.isolation_answers()}
    is_ready = all(needed.values())
    response = jsonify(ready=is_ready, checks={**needed, "places": not waiting_requests().is_full()})
    response.status_code = 200 if is_ready else 503
    return response
