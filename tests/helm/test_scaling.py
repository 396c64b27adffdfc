"""What scales: its targets, its bounds, what it asks, and how it comes down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helm.rendering import CHART, Object, Rendering, render
from tests.helm.rule_tests import check_rules, groups

IMAGE = "rules: {image: rewardstack:test}\n"
JUMPS = " ".join(["0 1 8 1 7 1 2 8 1 1 1 8"] * 8)
"""What vLLM's gauge of running requests showed every 0.7 s, at eight requests all the time."""


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
    assert trigger["metadata"]["query"] == f"sum(avg_over_time({running}[1m]) + avg_over_time({waiting}[1m]))"
    assert (trigger["metricType"], trigger["metadata"]["threshold"]) == ("AverageValue", "256")
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert trigger["authenticationRef"] == {"name": "prometheus"}
    recorded = [rule["record"] for group in groups(rendering) for rule in group["rules"] if "record" in rule]
    asked = [scaler(rendering, service)["metrics"] for service in ("judge-small", "embedding")]
    assert [metric["pods"]["metric"]["name"] for (metric,) in asked] == recorded


def test_scales_by_a_gauge_that_jumps(needs_prometheus: None, rendering: Rendering, tmp_path: Path) -> None:
    """Gauges that jump between 0 and 8 under a steady load stay above the target of 2, read at any moment."""
    (trigger,) = scaler(rendering, "judge")["triggers"]
    average = trigger["metadata"]["query"]
    asked = {
        average: 1,
        re.sub(r"avg_over_time\((.*?)\[1m\]\)", r"\1", average): 0,  # the gauges themselves
        'sum(rewardstack_judge_requests{service="r-judge-small"})': 1,
        "sum(rewardstack_embedding_inputs)": 1,
    }
    of = 'namespace="default",release="r",pod="a"'
    gauges = [
        ("vllm:num_requests_running", f'{of},service="r-judge",model_name="Qwen/Qwen3-32B"', JUMPS),
        ("vllm:num_requests_waiting", f'{of},service="r-judge",model_name="Qwen/Qwen3-32B"', "0x240"),
        ("vllm:num_requests_running", f'{of},service="r-judge-small",model_name="Qwen/Qwen3-4B"', JUMPS),
        ("vllm:num_requests_waiting", f'{of},service="r-judge-small",model_name="Qwen/Qwen3-4B"', "0x240"),
        ("te_queue_size", f'{of},service="r-embedding"', JUMPS),
    ]
    case = {
        "interval": "15s",
        "input_series": [{"series": f"{name}{{{labels}}}", "values": values} for name, labels, values in gauges],
        "promql_expr_test": [
            {
                "expr": f"min_over_time(({query})[10m:15s]) > bool 2",
                "eval_time": "15m",
                "exp_samples": [{"labels": "{}", "value": above}],
            }
            for query, above in asked.items()
        ],
    }
    check_rules(tmp_path, [rendering], "15s", [case])


def test_what_else_is_scaled_by(rendering: Rendering) -> None:
    """The embedding server by inputs that wait, reward server and workers by their processors."""
    (metric,) = scaler(rendering, "embedding")["metrics"]
    assert metric["pods"]["metric"]["name"] == "rewardstack_embedding_inputs"
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
