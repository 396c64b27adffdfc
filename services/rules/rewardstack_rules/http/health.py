"""`GET /health`: the process answers. `GET /ready`: it can score. Both are open, so they tell nothing else."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rewardstack_rules import __version__
from rewardstack_rules.http.context import context

blueprint = Blueprint("health", __name__)


@blueprint.get("/health")
def health() -> Response:
    """200 as long as requests are answered."""
    return jsonify(status="ok", version=__version__)


@blueprint.get("/ready")
def ready() -> Response:
    """200 if there are rules and isolated processes run them, else 503; what is wrong stands in `checks`."""
    here = context()
    checks = {"registry": len(here.registry) > 0, "isolation": here.evaluator.isolation_answers()}
    response = jsonify(ready=all(checks.values()), checks=checks)
    response.status_code = 200 if all(checks.values()) else 503
    return response
