"""Alerts and recording rules are about one release: two in one Prometheus do not hide each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.stack.rundir import ROOT
from tests.helm.rendering import CHART, Rendering, render
from tests.helm.rule_tests import check_rules, groups

ALERTS = CHART / "files/monitoring/alerts.yml"
STACK = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
NAMES = [rule["alert"] for group in STACK for rule in group["rules"]]
OURS = r"(?:up|vllm:\w+|te_\w+|rewardstack_\w+)"
TESTS = yaml.safe_load((ROOT / "tests/monitoring/alerts.test.yml").read_text(encoding="utf-8"))["tests"]
DEAD, ALIVE = 'namespace="default", release="a"', 'namespace="default", release="b"'


@pytest.fixture(scope="module")
def releases(needs_helm: None) -> list[Rendering]:
    """Two releases in one namespace."""
    return [render(CHART / "ci/keda-values.yaml", release=name) for name in ("a", "b")]


def test_alerts_are_those_of_the_stack(releases: list[Rendering]) -> None:
    """The alerts are those of every other deployment, about the release's own series and with its labels."""
    for rendering in releases:
        *found, _ = groups(rendering)
        matchers = f'namespace="default", release="{rendering.release}"'
        text = ALERTS.read_text(encoding="utf-8").replace('release=""', matchers)
        wanted = yaml.safe_load(text)["groups"]
        for group in wanted:
            for rule in group["rules"]:
                rule["labels"] |= {"namespace": "default", "release": rendering.release}
        assert found == wanted


def test_each_series_is_the_release_s(releases: list[Rendering]) -> None:
    """No query asks for a series without saying of which release."""
    for rule in rules(releases[0]):
        asked = re.findall(rf"\b{OURS}\b(\{{[^}}]*\}})?", re.sub(r"\"[^\"]*\"", _kept, rule["expr"]))
        assert asked
        assert all(DEAD in selector for selector in asked), rule


def _kept(quoted: re.Match[str]) -> str:
    """Return a quoted text without words that look like a series."""
    return quoted[0] if quoted[0] in ('"default"', '"a"') else '""'


def rules(rendering: Rendering) -> Iterator[dict[str, Any]]:
    """All rules of a release."""
    return (rule for group in groups(rendering) for rule in group["rules"])


def test_two_releases(needs_prometheus: None, releases: list[Rendering], tmp_path: Path) -> None:
    """What fires for a stack by itself fires for a release beside a healthy one, and for that one nothing does."""
    check_rules(tmp_path, releases, "1m", [_beside_a_healthy_one(test) for test in TESTS])


def _beside_a_healthy_one(test: dict[str, Any]) -> dict[str, Any]:
    """Return a case of the stack's alerts as one of the release `a`, while `b` is healthy."""
    series = [{**one, "series": _with(one["series"], DEAD)} for one in test["input_series"]]
    healthy = [
        {"series": f'up{{job="{job}", instance="10.0.1.{number}:1", {ALIVE}}}', "values": "1x600"}
        for number, job in enumerate(("gateway", "rules", "judge", "embedding"))
    ]
    counts = {"rewardstack_cache_up": 1, "rewardstack_queue_up": 1, "rewardstack_job_workers": 4}
    healthy += [{"series": f"{name}{{{ALIVE}}}", "values": f"{value}x600"} for name, value in counts.items()]
    expected = [
        {
            **case,
            "exp_alerts": [
                {**alert, "exp_labels": {**alert["exp_labels"], "namespace": "default", "release": "a"}}
                for alert in case.get("exp_alerts", ())
            ],
        }
        for case in test["alert_rule_test"]
    ]
    return {**test, "input_series": [*series, *healthy], "alert_rule_test": expected}


def _with(series: str, labels: str) -> str:
    """Return a series with further labels."""
    name, _, own = series.partition("{")
    return f"{name}{{{labels}, {own}" if own else f"{name}{{{labels}}}"


def test_recorded_series_are_the_release_s(releases: list[Rendering]) -> None:
    """What is recorded has the labels of its release, so that two of one namespace record different series."""
    recorded = [[rule for rule in rules(one) if "record" in rule] for one in releases]
    names = ["rewardstack_judge_requests", "rewardstack_embedding_inputs"]
    assert [[rule["record"] for rule in one] for one in recorded] == [names] * 2
    for labels, found in zip((DEAD, ALIVE), recorded, strict=True):
        assert [rule["expr"].count(labels) for rule in found] == [2, 1]
        assert all("by (namespace, release, pod, service" in rule["expr"] for rule in found)
