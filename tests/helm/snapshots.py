"""What the chart's behavior on a cluster depends on, as files: `python -m tests.helm.snapshots` writes them.

`docs/kubernetes.md`, "What was tried", has the behavior. A changed snapshot is a change of it, to be explained in the
commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.helm.rendering import CHART, Object, Rendering, render

FOLDER = Path(__file__).parent / "snapshots"
SCENARIOS = ("ci/keda", "ci/locked-down", "examples/8xh100-qwen3-32b")
WHOLE = ("HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "ScaledObject", "ServiceMonitor")
"""Kinds whose specifications are kept."""
OF_PODS = (
    "affinity",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "topologySpreadConstraints",
)
OF_CONTAINERS = (
    "command",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
)


def snapshot(rendering: Rendering) -> dict[str, Any]:
    """Return the objects on which the behavior depends, by kind and name."""
    found = {f"{one['kind']} {one['metadata']['name']}": _part(one) for one in rendering.objects}
    return {name: part for name, part in sorted(found.items()) if part}


def _part(one: Object) -> Any:
    spec = one.get("spec", {})
    if one["kind"] in WHOLE:
        return spec
    if one["kind"] == "Service":
        return {name: spec[name] for name in ("clusterIP", "ports", "type") if name in spec}
    if one["kind"] == "Pod":
        return _pod(spec)
    if one["kind"] in ("Deployment", "StatefulSet"):
        own = {name: value for name, value in spec.items() if name not in ("selector", "template")}
        return {**own, "pod": _pod(spec["template"]["spec"])}
    return None


def _pod(spec: Object) -> Object:
    (container,) = spec["containers"]
    own = {name: container[name] for name in OF_CONTAINERS if name in container}
    return {**{name: spec[name] for name in OF_PODS if name in spec}, "container": own}


def path_of(scenario: str) -> Path:
    """Return the file of a scenario's snapshot."""
    return FOLDER / f"{scenario.partition('/')[2]}.yaml"


def main() -> None:
    """Write the snapshots."""
    FOLDER.mkdir(exist_ok=True)
    for scenario in SCENARIOS:
        text = yaml.safe_dump(snapshot(render(CHART / f"{scenario}-values.yaml")), default_flow_style=None, width=120)
        path_of(scenario).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
