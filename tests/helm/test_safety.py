"""Who reaches whom, who may be taken away, who asks for metrics, and what stands outside of the cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml

from services.stack.rundir import ROOT
from tests.helm.rendering import CHART, Object, Rendering, render, selected, templates

SCENARIOS = sorted(CHART.glob("ci/*-values.yaml"))
SCHEMAS = Path(__file__).parent / "schemas"
IMAGE = "rules: {image: rewardstack:test}\n"
COMPONENT = "app.kubernetes.io/component"


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda path: str(path.stem).removesuffix("-values"))
def rendering(needs_helm: None, request: pytest.FixtureRequest) -> Rendering:
    """A scenario."""
    return render(request.param)


@pytest.fixture(scope="module")
def locked(needs_helm: None) -> Rendering:
    """The scenario in which the most is forbidden."""
    return render(CHART / "ci/locked-down-values.yaml")


def ports(template: Object) -> set[int]:
    """Of the containers of a pod."""
    return {
        port["containerPort"] for container in template["spec"]["containers"] for port in container.get("ports", ())
    }


def policies(rendering: Rendering) -> Iterator[tuple[str, Object]]:
    """Who may reach a service, by its name."""
    for policy in rendering.of("NetworkPolicy"):
        if "Ingress" in policy["spec"]["policyTypes"]:
            yield policy["spec"]["podSelector"]["matchLabels"][COMPONENT], policy["spec"]


def reaching(rendering: Rendering, service: str, port: int) -> set[str]:
    """Who may reach a port of a service: components of the release, and labels of namespaces."""
    (spec,) = (spec for name, spec in policies(rendering) if name == service)
    found = set()
    for rule in spec["ingress"] or ():
        if port in {one["port"] for one in rule["ports"]}:
            for peer in rule.get("from", ({},)):
                pods, namespaces = peer.get("podSelector"), peer.get("namespaceSelector")
                found.add(
                    pods["matchLabels"][COMPONENT]
                    if pods
                    else "=".join(*namespaces["matchLabels"].items())
                    if namespaces
                    else "its namespace"
                    if pods is not None
                    else "everybody"
                )
    return found


def test_custom_resources(rendering: Rendering) -> None:
    """What Kubernetes has no schema of is as its own project's schema asks for."""
    for path in SCHEMAS.glob("*.json"):
        for one in rendering.of(path.stem):
            jsonschema.validate(one, json.loads(path.read_text()))


def test_policies_have_the_ports_of_the_pods(rendering: Rendering) -> None:
    """Every service has one policy, whose ports are those that its container listens on."""
    found = dict(policies(rendering))
    assert len(found) == len([*policies(rendering)]) == len([*templates(rendering)])
    for spec in found.values():
        ((_, template),) = selected(rendering, spec["podSelector"])
        allowed = {port["port"] for rule in spec["ingress"] or () for port in rule["ports"]}
        assert allowed == ports(template)


def test_who_reaches_models_and_redis(locked: Rendering) -> None:
    """Models are reached by gateway and reward server, Redis by that and workers, and both by whom one labels."""
    scoring, prometheus = {"rules", "worker"}, {"kubernetes.io/metadata.name=monitoring"}
    assert reaching(locked, "judge", 8000) == {"gateway", "rules", "rewardstack=judge"} | prometheus
    assert reaching(locked, "embedding", 8080) == {"gateway", "rules", "rewardstack=judge"} | prometheus
    assert reaching(locked, "cache", 6379) == {*scoring, "check", "rewardstack=judge"}
    assert reaching(locked, "queue", 6379) == scoring
    assert reaching(locked, "rules", 6000) == {"gateway"} | prometheus
    assert reaching(locked, "worker", 9100) == reaching(locked, "gateway", 9113) == prometheus
    assert reaching(locked, "gateway", 6000) == {"its namespace", "rewardstack=trainer"}


def test_the_gateway_is_for_everybody(needs_helm: None) -> None:
    """Without labels of clients everybody reaches the gateway, and nobody else models and Redis."""
    rendering = render(CHART / "ci/cpu-small-values.yaml")
    assert reaching(rendering, "gateway", 6000) == {"everybody"}
    assert reaching(rendering, "judge", 8000) == {"gateway", "rules"}
    assert reaching(rendering, "queue", 6379) == {"rules", "worker"}


def test_what_pods_reach(locked: Rendering, rendering: Rendering) -> None:
    """Redis and the sandbox reach nobody; with restricted egress others reach each other, DNS and the values' peers."""
    for name, spec in policies(rendering):
        assert ("Egress" in spec["policyTypes"], "egress" in spec) == (name in ("cache", "queue", "sandbox"), False)
    spec = locked.one("NetworkPolicy", "egress")["spec"]
    release = {"app.kubernetes.io/name": "rewardstack", "app.kubernetes.io/instance": "r"}
    assert spec["podSelector"]["matchLabels"] == release
    assert spec["podSelector"]["matchExpressions"] == [
        {"key": COMPONENT, "operator": "NotIn", "values": ["cache", "queue", "sandbox"]}
    ]
    each_other, names, external = spec["egress"]
    assert each_other == {"to": [{"podSelector": {"matchLabels": release}}]}
    assert (names.keys(), {port["port"] for port in names["ports"]}) == ({"ports"}, {53, 5353})
    assert external["to"] == [{"ipBlock": {"cidr": "10.20.0.0/16"}}]


def test_budgets(rendering: Rendering) -> None:
    """Of each Deployment that has or may have several replicas one is taken away at a time, and of no other."""
    found = {}
    for budget in rendering.of("PodDisruptionBudget"):
        ((owner, _),) = selected(rendering, budget["spec"]["selector"])
        found[owner["metadata"]["name"]] = budget["spec"]["maxUnavailable"]
    several = {one["metadata"]["name"] for one in rendering.of("Deployment") if one["spec"].get("replicas", 2) > 1}
    assert found == dict.fromkeys(several, 1)


def test_accounts(rendering: Rendering) -> None:
    """All pods have an account of the chart's own, which gives nobody its token."""
    (account,) = rendering.of("ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    for _, template in templates(rendering):
        assert template["spec"]["serviceAccountName"] == account["metadata"]["name"]


def test_a_model_server_that_is_root(needs_helm: None) -> None:
    """An image that needs root runs as root and writes its files where the values say so, without capabilities."""
    spec = render(f"{IMAGE}judge: {{user: 0}}\n").one("Deployment", "judge")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_who_is_asked_for_metrics(locked: Rendering) -> None:
    """Prometheus asks every pod with a server, at a port that it has, under a job that prometheus.yml knows."""
    services = {one["metadata"]["name"]: one for one in locked.of("Service")}
    jobs = {}
    for monitor in locked.of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = (one for one in services.values() if wanted <= one["metadata"]["labels"].items())
        ((_, template),) = selected(locked, {"matchLabels": service["spec"]["selector"]})
        (endpoint,) = monitor["spec"]["endpoints"]
        (port,) = (one["port"] for one in service["spec"]["ports"] if one["name"] == endpoint["port"])
        assert port in ports(template)
        job, release, dropped = endpoint["relabelings"]
        assert (job["targetLabel"], release["targetLabel"], release["replacement"]) == ("job", "release", "r")
        assert dropped == {"action": "labeldrop", "regex": "endpoint"}
        jobs[job["replacement"]] = port
    configuration = yaml.safe_load((ROOT / "services/monitoring/prometheus.yml").read_text())
    asked = [one for one in configuration["scrape_configs"] if "dns_sd_configs" in one]
    assert jobs == {one["job_name"]: one["dns_sd_configs"][0]["port"] for one in asked}


def test_metrics_are_told(locked: Rendering) -> None:
    """The gateway and workers listen at the ports at which they are asked, and only where they are."""
    settings = locked.one("ConfigMap", "gateway-settings")["data"]
    assert settings["SERVICES"].endswith(" include metrics.conf;")
    assert settings["LISTEN_METRICS"] == "9113"
    (worker,) = locked.one("Deployment", "worker")["spec"]["template"]["spec"]["containers"]
    assert {"name": "WORKER_METRICS_PORT", "value": "9100"} in worker["env"]
    unwatched = render(CHART / "ci/cpu-small-values.yaml")
    assert "metrics" not in unwatched.one("ConfigMap", "gateway-settings")["data"]["SERVICES"]


def test_the_key_that_opens_metrics(locked: Rendering, needs_helm: None) -> None:
    """Prometheus shows one key alone: an entry that the user names, or the first of those that the values give."""

    def shown(rendering: Rendering) -> Object:
        (endpoint,) = rendering.one("ServiceMonitor", "rules")["spec"]["endpoints"]
        return dict(endpoint["authorization"]["credentials"])

    assert shown(locked) == {"name": "rewards", "key": "reward_server_api_keys"}
    own = render(CHART / "ci/keda-values.yaml")
    secret = own.one("Secret", "keys")
    assert base64.b64decode(secret["data"][shown(own)["key"]]) == b"first-key-of-tests"
    assert shown(own)["name"] == secret["metadata"]["name"]


def test_dashboards(locked: Rendering) -> None:
    """The dashboards are those of every other deployment, word for word."""
    folder = CHART / "files/monitoring"
    dashboards = locked.one("ConfigMap", "dashboards")
    assert dashboards["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert {name: json.loads(text) for name, text in dashboards["data"].items()} == {
        f"rewardstack-{path.name}": json.loads(path.read_text()) for path in folder.glob("*.json")
    }


def test_from_outside(locked: Rendering) -> None:
    """Each host leads to a port that the gateway's Service has, with the certificate."""
    gateway = locked.one("Service", "gateway")
    names = {port["name"]: port["port"] for port in gateway["spec"]["ports"]}
    ingress = locked.one("Ingress", "gateway")["spec"]
    led = {}
    for rule in ingress["rules"]:
        (path,) = rule["http"]["paths"]
        assert path["backend"]["service"]["name"] == gateway["metadata"]["name"]
        led[rule["host"]] = names[path["backend"]["service"]["port"]["name"]]
    assert led == {"rewards.example.com": 6000, "judge.example.com": 8000}
    assert ingress["tls"] == [{"secretName": "rewards-tls", "hosts": sorted(led)}]
    (route,) = locked.of("HTTPRoute")
    ((backend,),) = (rule["backendRefs"] for rule in route["spec"]["rules"])
    assert (backend["name"], backend["port"]) == (gateway["metadata"]["name"], names["rules"])


def test_nothing_from_outside(needs_helm: None) -> None:
    """Off by default: no address outside of the cluster, nothing that needs another project's resources."""
    kinds = {one["kind"] for one in render(CHART / "ci/cpu-small-values.yaml").objects}
    assert not kinds & {"Ingress", *(path.stem for path in SCHEMAS.glob("*.json"))}
