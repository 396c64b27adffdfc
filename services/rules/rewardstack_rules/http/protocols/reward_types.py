"""`GET /v1/reward_types`: this server's reward functions, its routes, and the settings that its cache keys contain."""

from __future__ import annotations

import math
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack_rules import __version__
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.http.context import context

blueprint = Blueprint("reward_types", __name__)


@blueprint.get("/v1/reward_types")
def reward_types() -> Response:
    """Return `{"reward_types": {name: {"fingerprint", "needs_reference", "fields", "range"}}, ...}`.

    The other keys are `routes` (definitions by name; a trailing `*` matches any suffix), `settings` and `version`.
    """
    here = context()
    return jsonify(
        reward_types={rule.name: _describe(rule) for rule in here.registry},
        routes=here.evaluator.definitions,
        settings=here.evaluator.client_settings.cache_key_settings,
        version=__version__,
    )


def _describe(rule: Rule) -> dict[str, Any]:
    return {
        "fingerprint": rule.fingerprint,
        "needs_reference": rule.needs_reference,
        "fields": list(rule.fields),
        "range": [bound if math.isfinite(bound) else None for bound in rule.range],
    }
