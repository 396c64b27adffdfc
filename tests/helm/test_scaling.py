"""What scales: its targets, its bounds, what it asks, and how it comes down."""

from __future__ import annotations

import pytest

from tests.helm.rendering import CHART, Object, Rendering, render

IMAGE = "rules: {image: rewardstack:test}\n"


@pytest.fixture(scope="module")
def rendering(needs_helm: None) -> Rendering:
    """A scenario that scales in every way."""
    return render(CHART / "ci/keda-values.yaml")


def scaler(rendering: Rendering, service: str) -> Object:
    """What scales a service."""
    kinds = ("HorizontalPodAutoscaler", "ScaledObject")
    (found,) = (one for one in rendering.of(*kinds) if one["metadata"]["name"] == f"r-{service}")
    return dict(found["spec"])


def test_targets(rendering: Rendering) -> None:
    """Whatever is scaled is there, by one alone, and says itself nothing of how many there are."""
    scaled = [one["spec"]["scaleTargetRef"] for one in rendering.of("HorizontalPodAutoscaler", "ScaledObject")]
    assert {(one["apiVersion"], one["kind"]) for one in scaled} == {("apps/v1", "Deployment")}
    names = sorted(one["name"] for one in scaled)
    assert names == ["r-embedding", "r-judge", "r-judge-small", "r-rules", "r-worker"]
    assert (
        sorted(one["metadata"]["name"] for one in rendering.of("Deployment") if "replicas" not in one["spec"]) == names
    )


def test_never_to_zero(rendering: Rendering) -> None:
    """One replica stays of whatever is scaled, and no more come than the values say."""
    for one in rendering.of("HorizontalPodAutoscaler", "ScaledObject"):
        spec = one["spec"]
        least = spec.get("minReplicas", spec.get("minReplicaCount"))
        assert 1 <= least <= spec.get("maxReplicas", spec.get("maxReplicaCount"))


def test_what_judges_are_scaled_by(rendering: Rendering) -> None:
    """Requests that run and wait, of this judge alone; what Prometheus does not know takes no replica away."""
    (trigger,) = scaler(rendering, "judge")["triggers"]
    labels = 'namespace="default",service="r-judge",model_name="Qwen/Qwen3-32B"'
    running, waiting = (f"vllm:num_requests_{which}{{{labels}}}" for which in ("running", "waiting"))
    assert trigger["metadata"]["query"] == f"sum({running} + {waiting})"
    assert (trigger["metricType"], trigger["metadata"]["threshold"]) == ("AverageValue", "256")
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert trigger["authenticationRef"] == {"name": "prometheus"}
    (rules,) = rendering.of("PrometheusRule")
    recorded = [rule["record"] for group in rules["spec"]["groups"] for rule in group["rules"] if "record" in rule]
    (metric,) = scaler(rendering, "judge-small")["metrics"]
    assert [metric["pods"]["metric"]["name"]] == recorded


def test_what_else_is_scaled_by(rendering: Rendering) -> None:
    """The embedding server by inputs that wait, reward server and workers by their processors."""
    (metric,) = scaler(rendering, "embedding")["metrics"]
    assert metric["pods"]["metric"]["name"] == "te_queue_size"
    for service in ("rules", "worker"):
        (metric,) = scaler(rendering, service)["metrics"]
        assert metric["resource"]["name"] == "cpu"


def test_models_come_down_one_at_a_time(rendering: Rendering) -> None:
    """A replica of a model is taken away after the one before it has had the time to end its requests."""
    for service in ("judge", "judge-small", "embedding"):
        spec = scaler(rendering, service)
        if "triggers" in spec:
            spec = spec["advanced"]["horizontalPodAutoscalerConfig"]
        down = spec["behavior"]["scaleDown"]
        grace = rendering.one("Deployment", service)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        (policy,) = down["policies"]
        assert policy["value"] == 1
        assert min(policy["periodSeconds"], down["stabilizationWindowSeconds"]) > grace
