"""The gateway asks the DNS servers of its pod, and starts while they are away."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.stack.services_table import SERVICES
from tests.helm.pods import Cluster, docker, pods
from tests.helm.rendering import CHART, Rendering, render
from tests.support.waiting import eventually

NOBODY = "192.0.2.53"
"""An address that nobody has (RFC 5737)."""


@pytest.fixture(scope="module")
def rendering(needs_helm: None) -> Rendering:
    """A scenario with every service."""
    return render(CHART / "ci/cpu-small-values.yaml")


def test_servers_of_the_values(rendering: Rendering, needs_helm: None) -> None:
    """Servers that the values name take the place of the pod's own, which the start script finds."""
    assert rendering.one("ConfigMap", "gateway-settings")["data"]["DNS_RESOLVER"] == ""
    named = render(CHART / "ci/cpu-small-values.yaml", "gateway: {resolver: 10.0.0.10}\n")
    assert named.one("ConfigMap", "gateway-settings")["data"]["DNS_RESOLVER"] == "10.0.0.10"
    for found in (rendering, named):
        (container,) = found.one("Deployment", "gateway")["spec"]["template"]["spec"]["containers"]
        folder, _, name = container["command"][1].rpartition("/")
        assert folder in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert name in found.one("ConfigMap", "gateway")["data"]


@pytest.fixture
def gateway(needs_engine: None, rendering: Rendering, tmp_path: Path) -> Iterator[str]:
    """The container of a gateway whose DNS server does not answer."""
    (pod,) = (one for one in pods(rendering) if one.name == "r-gateway-0")
    one = Cluster(rendering, tmp_path)
    tmp_path.chmod(0o755)
    docker("network", "create", one.network)
    try:
        one.start(pod, "--dns", NOBODY)
        yield one.called(pod)
    finally:
        one.kill(pod.name)
        docker("network", "rm", one.network)


def test_it_starts_while_dns_is_away(gateway: str) -> None:
    """No name is looked up at the start, so nginx answers for itself while no name resolves."""
    path = SERVICES["gateway"].probe.ready
    ask = ["docker", "exec", gateway, "curl", "-fsS", f"http://127.0.0.1:6000{path}"]
    eventually(lambda: subprocess.run(ask, capture_output=True, check=False).returncode == 0)
