"""Where the scheduler of Kubernetes puts replicas, as its documentation scores nodes.

https://kubernetes.io/docs/reference/scheduling/config/: InterPodAffinity and PodTopologySpread have the weight 2. Of
the others only a node's own score is modeled (`Node.worth`: free resources, an image that is already there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.helm.rendering import Object

HIGHEST = 100.0


@dataclass
class Node:
    """A node.

    Args:
        labels: of it.
        worth: points that it has whatever runs there, up to 200.
        pods: labels of the pods that run there.
    """

    labels: Mapping[str, str]
    worth: float = 0.0
    pods: list[Mapping[str, str]] = field(default_factory=list)


def place(template: Object, replicas: int, nodes: Sequence[Node]) -> list[int]:
    """Return how many of the replicas each node gets; the first of equal nodes gets the next one."""
    labels = {**template["metadata"]["labels"], "pod-template-hash": "1"}
    for _ in range(replicas):
        scores = [
            2 * one + 2 * other
            for one, other in zip(_affinity(template, labels, nodes), _spread(template, nodes), strict=True)
        ]
        best = max(range(len(nodes)), key=lambda number: scores[number] + nodes[number].worth)
        nodes[best].pods.append(labels)
    return [len(node.pods) for node in nodes]


def _affinity(template: Object, labels: Mapping[str, str], nodes: Sequence[Node]) -> list[float]:
    """Preferred anti-affinity: those of the pod that comes, and of those that are there, which are its like."""
    terms = template["spec"].get("affinity", {}).get("podAntiAffinity", {})
    raw = [0.0] * len(nodes)
    for term in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
        key = term["podAffinityTerm"]["topologyKey"]
        wanted = dict(term["podAffinityTerm"]["labelSelector"]["matchLabels"])
        wanted |= {name: labels[name] for name in term["podAffinityTerm"].get("matchLabelKeys", ()) if name in labels}
        for number, node in enumerate(nodes):
            # A node without the label is in no topology.
            same = [other for other in nodes if key in node.labels and other.labels.get(key) == node.labels[key]]
            raw[number] -= (
                2 * term["weight"] * sum(wanted.items() <= pod.items() for other in same for pod in other.pods)
            )
    return _normalized(raw)


def _spread(template: Object, nodes: Sequence[Node]) -> list[float]:
    """Spread constraints: a node that lacks one of their labels is left out, and has no points."""
    constraints = template["spec"].get("topologySpreadConstraints", ())
    keys = [one["topologyKey"] for one in constraints]
    if not keys:
        return [0.0] * len(nodes)
    counted = [number for number, node in enumerate(nodes) if all(key in node.labels for key in keys)]
    raw = {}
    for number in counted:
        raw[number] = -sum(
            float(len(other.pods))
            for key in keys
            for other in (nodes[one] for one in counted)
            if other.labels[key] == nodes[number].labels[key]
        )
    found = dict(zip(raw, _normalized([*raw.values()]), strict=True))
    return [found.get(number, 0.0) for number in range(len(nodes))]


def _normalized(raw: Sequence[float]) -> list[float]:
    least, most = min(raw, default=0.0), max(raw, default=0.0)
    return [HIGHEST * (one - least) / (most - least) if most > least else 0.0 for one in raw]
