"""Each scenario of values renders as Kubernetes' schemas ask for, and what matters of it is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import __version__
from services.stack.services_table import SERVICES
from services.stack.settings_table import TABLE
from tests.helm.rendering import CHART, VERSIONS, Object, Refused, Rendering, lint, render, templates

SCENARIOS = sorted([*CHART.glob("ci/*-values.yaml"), *CHART.glob("examples/*-values.yaml")])
DNS_SECONDS = 30
"""For which CoreDNS keeps an answer, unless it is told otherwise."""
SERVING = ("gateway", "rules", "sandbox", "judge", "reward-model", "embedding")
DRAIN_TIMEOUT = TABLE["DRAIN_TIMEOUT"].default
USERS = ("rewards", "rewardstack-keys")
"""ConfigMaps and Secrets of the user's own, in the scenarios."""
IMAGE = "rules: {image: rewardstack:test}\n"


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda path: str(path.stem).removesuffix("-values"))
def rendering(needs_helm: None, request: pytest.FixtureRequest) -> Rendering:
    """A scenario, for the newest version of Kubernetes."""
    return render(request.param)


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: str(path.stem))
def test_earlier_versions(needs_helm: None, scenario: Path) -> None:
    """Every scenario renders for the earlier versions of Kubernetes."""
    for version in VERSIONS[:-1]:
        assert render(scenario, kubernetes=version).objects


def test_lint(needs_helm: None) -> None:
    """Helm has no complaint about the chart."""
    lint()


def specs(rendering: Rendering) -> Iterator[tuple[str, Object]]:
    """Of each pod, with the name of what it is of."""
    for one in rendering.objects:
        if one["kind"] == "Pod":
            yield one["metadata"]["name"], one["spec"]
        elif one["kind"] in ("Deployment", "StatefulSet"):
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def test_every_pod_is_confined(rendering: Rendering) -> None:
    """No pod has a token of the cluster or Services' variables; none has a capability.

    None is root or writes into its image, but for a model server whose models are in a folder of the node.
    """
    for name, spec in specs(rendering):
        assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False), name
        (container,) = spec["containers"]
        rights = container["securityContext"]
        assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]}), name
        if not any("hostPath" in volume for volume in spec["volumes"]):
            user = spec["securityContext"]
            assert (user["runAsNonRoot"], user["seccompProfile"]["type"]) == (True, "RuntimeDefault"), name
            assert rights["readOnlyRootFilesystem"], name


def test_services_lead_to_pods(rendering: Rendering) -> None:
    """A Service selects the pods of one Deployment or StatefulSet, and its ports are named there."""
    owners = [one["spec"]["template"] for one in rendering.of("Deployment", "StatefulSet")]
    for service in rendering.of("Service"):
        selector = service["spec"]["selector"].items()
        (template,) = (one for one in owners if selector <= one["metadata"]["labels"].items())
        (container,) = template["spec"]["containers"]
        named = {port["name"]: port["containerPort"] for port in container["ports"]}
        ports = {port["targetPort"]: port["port"] for port in service["spec"]["ports"]}
        # A gateway that the world reaches tells it no metrics.
        its_own = {"metrics"} if service["metadata"]["name"].endswith("-metrics") else named.keys() - {"metrics"}
        assert ports == {name: named[name] for name in its_own}


def test_pods_drain(rendering: Rendering) -> None:
    """A pod that serves requests accepts them while DNS may return it, then has DRAIN_TIMEOUT and a margin.

    It is told of that timeout, and a new pod counts as available only once DNS returns it.
    """
    drain = int(rendering.one("ConfigMap", "settings")["data"].get("DRAIN_TIMEOUT", DRAIN_TIMEOUT))
    for one in rendering.of("Deployment", "StatefulSet"):
        spec = one["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        name = one["metadata"]["name"].removeprefix("r-")
        service = name if name in SERVICES else name.split("-")[0]
        sleeps = 0
        if service in SERVING:
            sleeps = container["lifecycle"]["preStop"]["sleep"]["seconds"]
            assert sleeps > DNS_SECONDS
            assert one["spec"].get("minReadySeconds", sleeps if service == "gateway" else 0) == sleeps
        assert spec["terminationGracePeriodSeconds"] == sleeps + drain + SERVICES[service].stop_margin
        if service in ("judge", "reward-model"):
            assert container["command"][container["command"].index("--shutdown-timeout") + 1] == str(drain)


def test_a_model_that_loads_is_no_failed_rollout(rendering: Rendering) -> None:
    """A rollout is waited for as long as the startup probe lets a model load."""
    for one in rendering.of("Deployment"):
        (container,) = one["spec"]["template"]["spec"]["containers"]
        if container["name"].startswith(("judge", "embedding")):
            probe = container["startupProbe"]
            assert one["spec"]["progressDeadlineSeconds"] > probe["periodSeconds"] * probe["failureThreshold"]


def test_a_new_version_restarts_nothing_by_itself(needs_helm: None, tmp_path: Path) -> None:
    """The chart's version is on every object, and on no pod: a later one restarts only what reads something else."""
    copy = shutil.copytree(CHART, tmp_path / "chart")
    about = copy / "Chart.yaml"
    about.write_text(about.read_text().replace(f"version: {__version__}", "version: 0.9.9"))
    values = CHART / "ci/multi-model-values.yaml"
    before, after = render(values), render(values, chart=copy)
    assert before.objects != after.objects
    assert [pod for _, pod in templates(before)] == [pod for _, pod in templates(after)]


def test_what_pods_name_is_there(rendering: Rendering) -> None:
    """ConfigMaps and Secrets that a pod is given are rendered, or named by the values as the user's own."""
    there = {(one["kind"], one["metadata"]["name"]) for one in rendering.of("ConfigMap", "Secret")}
    for name, spec in specs(rendering):
        for volume in spec.get("volumes", ()):
            for kind, named in (
                ("ConfigMap", volume.get("configMap", {}).get("name")),
                ("Secret", volume.get("secret", {}).get("secretName")),
            ):
                assert named in (None, *USERS) or (kind, named) in there, (name, volume)


def test_an_image_is_asked_for(needs_helm: None) -> None:
    """The chart has no default image that an unrelated person might own: its error says how to build one."""
    with pytest.raises(Refused, match="make images REGISTRY"):
        render("{}\n")


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Paths at which two objects differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif one != other:
        yield path


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        ("gateway: {replicas: 7}", {"r-gateway/spec/replicas"}),
        ("gateway: {image: nginx:1.31}", {"r-gateway/spec/template/spec/containers"}),
        (
            "gateway: {settings: {GATEWAY_TIMEOUT: 9}}",
            {
                "r-gateway-settings/data/GATEWAY_TIMEOUT",
                "r-gateway/spec/template/metadata/annotations/checksum/settings",
            },
        ),
        (
            # No pod has a hash of it.
            "keys: {values: {llm_judge_server_api_key: another-key-of-the-tests}}",
            {"r-keys/data/llm_judge_server_api_key"},
        ),
        (
            "gateway: {resolver: dns.example.com}",
            {
                "r-gateway-settings/data/DNS_RESOLVER",
                "r-gateway/spec/template/metadata/annotations/checksum/settings",
            },
        ),
        (
            "settings: {VERIFY_TIMEOUT: 9}",
            {
                "r-settings/data/VERIFY_TIMEOUT",
                "r-rules/spec/template/metadata/annotations/checksum/settings",
                "r-worker/spec/template/metadata/annotations/checksum/settings",
            },
        ),
    ],
)
def test_only_what_must_differs(needs_helm: None, values: str, changed: set[str]) -> None:
    """A changed value changes what it configures and restarts the pods that read it, and nothing else."""
    base = f"{IMAGE}keys: {{values: {{llm_judge_server_api_key: one-key-of-the-tests}}}}\n"
    before, after = render(base), render(base, values)
    pairs = zip(before.objects, after.objects, strict=True)
    assert {path for one, other in pairs for path in differences(one, other, one["metadata"]["name"])} == changed
