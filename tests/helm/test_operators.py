"""What operators add to every service: one section for all of them, and the same names for each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from rewardstack import __version__
from tests.helm.rendering import CHART, Object, Rendering, render, selected, templates
from tests.support.table import Table

SERVICES = {"rules", "worker", "gateway", "cache", "queue", "judge", "judge-small", "embedding"}
COMMON = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["common"]
MAPS = ("podAnnotations", "podLabels", "nodeSelector")
SAMPLES = {
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}],
    "priorityClassName": "high",
    "runtimeClassName": "kata",
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraEnvFrom": [{"secretRef": {"name": "proxy"}}],
    "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "extraArgs": ["--further"],
    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    "podSecurityContext": {"supplementalGroups": [4000]},
    "securityContext": {"privileged": False},
}


@pytest.fixture(scope="module")
def operators(needs_helm: None) -> Rendering:
    """The scenario with everything that operators add."""
    return render(CHART / "ci/operators-values.yaml")


def pod(rendering: Rendering, service: str) -> Object:
    """The pod template of a service."""
    kind = "StatefulSet" if service == "queue" else "Deployment"
    return dict(rendering.one(kind, service)["spec"]["template"])


def test_each_service_accepts_each_value(needs_helm: None, table: Table) -> None:
    """Each value of `common` is accepted by each service, and is in its pod as Kubernetes has it."""
    assert SAMPLES.keys() == COMMON.keys()
    values = dict.fromkeys(("rules", "worker", "gateway", "cache", "queue", "judge", "embedding"), SAMPLES)
    found = render("rules: {image: rewardstack:test}\n", yaml.safe_dump({**values, "judges": {"default": {}}}))
    for service in SERVICES - {"judge-small"}:
        template = pod(found, service)
        (container,) = template["spec"]["containers"]
        for name, value in SAMPLES.items():
            with table.case(f"{service}.{name}"):
                assert has(template, container, name, value)


def has(template: Object, container: Object, name: str, value: object) -> bool:
    """Whether a pod has a value of `common`, where Kubernetes has it."""
    places = {
        "podAnnotations": template["metadata"]["annotations"],
        "podLabels": template["metadata"]["labels"],
        "podSecurityContext": template["spec"]["securityContext"],
        "extraVolumes": template["spec"].get("volumes"),
        "extraEnv": container.get("env"),
        "extraEnvFrom": container.get("envFrom"),
        "extraVolumeMounts": container["volumeMounts"],
        "extraArgs": [*container.get("command", ()), *container.get("args", ())],
        "lifecycle": container.get("lifecycle"),
        "securityContext": container["securityContext"],
    }
    place = places.get(name)
    if place is None:
        return bool(template["spec"][name] == value)
    if isinstance(place, dict):
        assert isinstance(value, dict)
        return bool(value.items() <= place.items())
    assert isinstance(value, list)
    return bool(place[-len(value) :] == value)


def test_common_values_reach_all_pods(operators: Rendering) -> None:
    """Every pod has the common values; a service's own maps are merged with them, its lists replace them."""
    for service in SERVICES:
        template = pod(operators, service)
        (container,) = template["spec"]["containers"]
        assert template["metadata"]["annotations"]["sidecar.istio.io/inject"] == "true", service
        labels = template["metadata"]["labels"]
        assert (labels["kueue.x-k8s.io/queue-name"], labels["team"]) == ("rewards", "alignment")
        assert template["spec"]["priorityClassName"] == "training"
        assert {"name": "ca", "configMap": {"name": "rewards"}} in template["spec"]["volumes"]
        assert "/etc/ssl/private-ca" in [mount["mountPath"] for mount in container["volumeMounts"]]
        names = [variable["name"] for variable in container.get("env", ())]
        assert ("HTTPS_PROXY" in names) == (service != "worker")
    assert pod(operators, "rules")["metadata"]["labels"]["tier"] == "front"
    assert pod(operators, "rules")["spec"]["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "rewards"}
    ]
    assert pod(operators, "judge-small")["metadata"]["labels"]["tier"] == "small"
    assert all(one["metadata"]["labels"]["team"] == "alignment" for one in operators.objects)


def test_hooks_of_a_service(operators: Rendering) -> None:
    """A hook of the values stands beside the chart's own, whose place it takes if it is of the same kind."""
    (container,) = pod(operators, "rules")["spec"]["containers"]
    hooks = {"preStop": {"sleep": {"seconds": 35}}, "postStart": {"exec": {"command": ["true"]}}}
    assert container["lifecycle"] == hooks


def test_affinity_of_a_service(operators: Rendering) -> None:
    """An affinity of the values takes the place of the chart's."""
    assert [*pod(operators, "gateway")["spec"]["affinity"]] == ["nodeAffinity"]
    assert [*pod(operators, "rules")["spec"]["affinity"]] == ["podAntiAffinity"]


def test_users_of_the_cluster(operators: Rendering) -> None:
    """With `fixedUsers: false` no pod names a user, a group or one of its files; none may be root all the same."""
    for _, template in templates(operators):
        own = template["spec"]["securityContext"]
        assert own["runAsNonRoot"] is True
        assert not own.keys() & {"runAsUser", "runAsGroup", "fsGroup"}
    assert pod(operators, "rules")["spec"]["securityContext"]["supplementalGroups"] == [4000]


def test_account(operators: Rendering) -> None:
    """The account has the annotations by which clouds give it a role."""
    (account,) = operators.of("ServiceAccount")
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/rewards"}


def test_requests_that_are_taken_away(operators: Rendering) -> None:
    """Without a request for CPUs a reward server counts those of its node."""
    (container,) = pod(operators, "rules")["spec"]["containers"]
    assert container["resources"] == {"limits": {"memory": "4Gi"}}
    assert "VERIFY_PROCESSES" not in {variable["name"] for variable in container["env"]}


def test_service_of_the_gateway(operators: Rendering, needs_helm: None) -> None:
    """A load balancer keeps client addresses if the values say so; ports name their protocol unless it is unset."""
    spec = operators.one("Service", "gateway")["spec"]
    assert spec["externalTrafficPolicy"] == "Local"
    assert not any("appProtocol" in port for port in spec["ports"])
    default = render(CHART / "ci/keda-values.yaml")
    protocols = {
        service["metadata"]["name"]: {port["appProtocol"] for port in service["spec"]["ports"]}
        for service in default.of("Service")
    }
    assert protocols.pop("r-cache") == protocols.pop("r-queue") == {"redis"}
    assert set.union(*protocols.values()) == {"http"}
    assert "externalTrafficPolicy" not in default.one("Service", "gateway")["spec"]


def test_an_image_by_digest(operators: Rendering, needs_helm: None) -> None:
    """Every image takes a digest, in a registry of all too."""
    (container,) = pod(operators, "rules")["spec"]["containers"]
    assert container["image"].endswith(f":{__version__}@sha256:" + "0123456789abcdef" * 4)
    digest = "sha256:" + "0" * 64
    images = {
        "rules": f"rewardstack@{digest}",
        "gateway": f"nginx:1.30@{digest}",
        "cache": f"docker.io/library/redis@{digest}",
        "judge": f"vllm/vllm-openai:v1@{digest}",
        "embedding": f"ghcr.io/huggingface/tei:1@{digest}",
    }
    values = {name: {"image": image} for name, image in images.items()}
    found = render(yaml.safe_dump({"registry": "registry.example.com", **values}))
    shown = {name: pod(found, name)["spec"]["containers"][0]["image"] for name in images}
    assert shown == {
        "rules": f"registry.example.com/rewardstack@{digest}",
        "gateway": f"registry.example.com/nginx:1.30@{digest}",
        "cache": f"registry.example.com/library/redis@{digest}",
        "judge": f"registry.example.com/vllm/vllm-openai:v1@{digest}",
        "embedding": f"registry.example.com/huggingface/tei:1@{digest}",
    }


def test_as_a_subchart(needs_helm: None, tmp_path: Path) -> None:
    """Two of it in one release, by aliases, have names and selectors of their own, which no other chart has."""
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts/rewardstack")
    dependencies = [
        {"name": "rewardstack", "version": __version__, "alias": alias} for alias in ("mathematics", "programs")
    ]
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": dependencies}
    (parent / "Chart.yaml").write_text(json.dumps(about))
    one = {"rules": {"image": "rewardstack:test"}, "judge": {"enabled": False}, "embedding": {"enabled": False}}
    found = render(yaml.safe_dump({"mathematics": one, "programs": one}), chart=parent)
    names = [(item["kind"], item["metadata"]["name"]) for item in found.objects]
    assert len(names) == len({*names})
    assert {name.split("-")[1] for _, name in names} == {"mathematics", "programs"}
    for service in found.of("Service"):
        ((owner, _),) = selected(found, {"matchLabels": service["spec"]["selector"]})
        assert owner["metadata"]["name"] == service["metadata"]["name"]


@pytest.mark.parametrize(
    ("values", "name"),
    [("fullnameOverride: rewards\n", "rewards-rules"), ("nameOverride: team\n", "r-team-rules")],
)
def test_names_of_the_values(needs_helm: None, values: str, name: str) -> None:
    """Names of the values replace the release's in all objects, and in the addresses that name them."""
    found = render("rules: {image: rewardstack:test}\n", values)
    deployments = {one["metadata"]["name"] for one in found.of("Deployment")}
    assert name in deployments
    (settings,) = (one for one in found.of("ConfigMap") if "REWARD_SERVER_URL" in one["data"])
    assert settings["data"]["REWARD_SERVER_URL"].startswith(f"http://{name.removesuffix('rules')}gateway.default.svc")
