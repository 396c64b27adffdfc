"""What the chart does about objects that the cluster has already."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.helm.rendering import Object, Refused, is_tool, render

BASE = "rules: {image: rewardstack:test}\n"
SCALED = {
    "rules": "rules: {autoscaling: {enabled: true}}\n",
    "worker": "worker: {autoscaling: {enabled: true}}\n",
    "judge": "judge: {scaling: {by: keda}}\n",
    "embedding": "embedding: {scaling: {by: hpa}}\n",
}


@pytest.fixture(autouse=True)
def needs_cluster(needs_helm: None) -> None:
    """A cluster, which the tool simulates and a `helm` binary does not."""
    if not is_tool():
        pytest.skip("helm renders without a cluster")


def live(kind: str, service: str, spec: Object) -> Object:
    """An object of the release, as the cluster has it."""
    metadata: dict[str, Any] = {
        "name": f"r-{service}",
        "namespace": "default",
        "uid": "1",
        "resourceVersion": "1",
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "default"},
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def queue(size: str) -> Object:
    """The queue, as the cluster has it, with a claim of a size."""
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": size}}}}
    return live("StatefulSet", "queue", {"volumeClaimTemplates": [claim]})


@pytest.mark.parametrize("service", SCALED)
def test_switching_autoscaling_on_keeps_the_replicas(service: str) -> None:
    """A service that is scaled for the first time has as many replicas as before, where Helm would reset it to one."""
    found = render(BASE, SCALED[service], live=[live("Deployment", service, {"replicas": 4})])
    assert found.one("Deployment", service)["spec"]["replicas"] == 4
    assert "replicas" not in render(BASE, SCALED[service]).one("Deployment", service)["spec"]


def test_a_claim_that_would_change() -> None:
    """An upgrade that would change the queue's claim is refused, with the commands that make it possible."""
    larger = "queue: {storage: {size: 20Gi}}\n"
    with pytest.raises(Refused, match=r"queue\.storage\.size: the claim has 10Gi") as refused:
        render(BASE, larger, live=[queue("10Gi")])
    assert "patch pvc data-r-queue-0" in str(refused.value)
    assert "delete statefulset r-queue --cascade=orphan" in str(refused.value)
    assert render(BASE, larger).one("StatefulSet", "queue")
    assert render(BASE, live=[queue(yaml.safe_load("10240Mi"))]).one("StatefulSet", "queue")
