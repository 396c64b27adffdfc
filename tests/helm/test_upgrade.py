"""A release of the chart's first version can be upgraded: what Kubernetes lets nobody change stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helm.rendering import CHART, Object, Rendering, render

FIRST = Path(__file__).parent / "cases" / "first-version.json"
"""Of the chart 0.1.0, by scenario and object; it is never regenerated."""
CHANGEABLE = {
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "revisionHistoryLimit",
}
"""Fields of a StatefulSet's `spec` that an upgrade may change."""


def fixed(rendering: Rendering) -> dict[str, Object]:
    """What of each object Kubernetes lets nobody change, by kind and name."""
    return {f"{one['kind']} {one['metadata']['name']}": _fixed(one) for one in rendering.objects if _fixed(one)}


def _fixed(one: Object) -> Object:
    spec: dict[str, Any] = one.get("spec", {})
    if one["kind"] == "StatefulSet":
        return {name: value for name, value in spec.items() if name not in CHANGEABLE}
    named = {"Deployment": "selector", "Service": "clusterIP"}.get(one["kind"], "")
    return {named: spec[named]} if named in spec else {}


@pytest.mark.parametrize("scenario", json.loads(FIRST.read_text()))
def test_what_cannot_change(needs_helm: None, scenario: str) -> None:
    """Whatever the first version made is still made, with the same selectors, claims and Services.

    The cache is a Deployment now: an upgrade creates it beside the StatefulSet, then removes that. It has no claim.
    """
    first = json.loads(FIRST.read_text())[scenario]
    found = render(CHART / f"ci/{scenario}-values.yaml")
    now = fixed(found)
    if cache := first.pop("StatefulSet r-cache", None):
        assert cache["selector"] == found.one("Deployment", "cache")["spec"]["selector"]
    assert {name: now.get(name) for name in first} == first
