"""Where pods go: replicas stand apart on any cluster, and what a node takes with it comes back on another."""

from __future__ import annotations

import pytest

from tests.helm.rendering import CHART, Rendering, render, selected
from tests.helm.scheduler import Node, place

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SERVICES = ("gateway", "rules", "judge", "embedding", "worker")
ATTRACTIVE = 180.0
"""The first node's own score: it has the image, and is nearly empty."""


@pytest.fixture(scope="module")
def rendering(needs_helm: None) -> Rendering:
    """A scenario with every service."""
    return render(CHART / "ci/keda-values.yaml")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("zones", "replicas", "spread"),
    [
        (["", ""], 4, [2, 2]),
        (["", "", ""], 3, [1, 1, 1]),
        (["a", "b"], 4, [2, 2]),
        (["a", "a", "b", "b"], 4, [1, 1, 1, 1]),
        (["a", "a", "b"], 2, [1, 0, 1]),
    ],
)  # fmt: skip
def test_replicas_stand_apart(
    rendering: Rendering, service: str, zones: list[str], replicas: int, spread: list[int]
) -> None:
    """Replicas are spread over nodes and zones, where nodes have no zone label too, and one node attracts them."""
    template = rendering.one("Deployment", service)["spec"]["template"]
    nodes = [Node({HOST: f"n{number}", **({ZONE: zone} if zone else {})}) for number, zone in enumerate(zones)]
    nodes[0].worth = ATTRACTIVE
    assert place(template, replicas, nodes) == spread


def test_replicas_are_counted_by_their_own_labels(rendering: Rendering) -> None:
    """A Deployment's replicas avoid each other alone, by nodes first."""
    for deployment in rendering.of("Deployment"):
        terms = deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
        preferred = terms["preferredDuringSchedulingIgnoredDuringExecution"]
        assert [(one["weight"], one["podAffinityTerm"]["topologyKey"]) for one in preferred] == [
            (100, HOST),
            (50, ZONE),
        ]
        for one in preferred:
            ((owner, _),) = selected(rendering, one["podAffinityTerm"]["labelSelector"])
            assert owner is deployment


def test_the_cache_is_moved_off_a_lost_node(rendering: Rendering) -> None:
    """The cache keeps nothing, so a Deployment replaces it; that of a StatefulSet waits for its node."""
    assert rendering.one("Deployment", "cache")["spec"]["replicas"] == 1
    assert {one["metadata"]["name"] for one in rendering.of("StatefulSet")} == {"r-queue"}
