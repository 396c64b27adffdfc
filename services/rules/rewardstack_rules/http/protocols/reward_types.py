"""`GET /v1/reward_types`: the reward functions of this server, with what a client needs to make their cache keys."""

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
    """`{"reward_types": {name: {"fingerprint", "needs_reference", "fields", "range"}}, "version"}`."""
    return jsonify(reward_types={rule.name: _describe(rule) for rule in context().registry}, version=__version__)


def _describe(rule: Rule) -> dict[str, Any]:
    return {
        "fingerprint": rule.fingerprint,
        "needs_reference": rule.needs_reference,
        "fields": list(rule.fields),
        "range": [bound if math.isfinite(bound) else None for bound in rule.range],
    }
