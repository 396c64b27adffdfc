"""The gateway asks the DNS servers of its pod, and waits for them when it starts, but not for ever."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.stack.services_table import SERVICES
from tests.helm.pods import Cluster, Pod, docker, pods
from tests.helm.rendering import CHART, Rendering, render
from tests.support.table import Table
from tests.support.waiting import eventually

NOBODY = "192.0.2.53"
"""An address that nobody has (RFC 5737)."""
MINUTES = 180.0
"""Maximum seconds until the gateway has waited for a minute and started."""
ASK = CHART / "files/gateway/dns_answers.sh"
CODES = {
    "it exists": (0, True),
    "it does not": (3, True),
    "the server fails": (2, False),
    "the server refuses": (5, False),
}
"""RCODE of a DNS server's reply (RFC 1035, section 4.1.1), and whether it is an answer about a name."""


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


@contextmanager
def dns(host: str, code: int) -> Iterator[str]:
    """The address of a DNS server that gives every question the same reply; it understands one in one packet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    name = b"\x05rules\x0aten-chars1\x05local\x00\x00\x01\x00\x01"
    with socket.socket(family, socket.SOCK_DGRAM) as server:
        server.bind((host, 0))

        def reply() -> None:
            question, sender = server.recvfrom(512)
            if question.endswith(name):
                server.sendto(question[:2] + bytes([0x81, 0x80 | code]) + question[4:], sender)

        thread = threading.Thread(target=reply)
        thread.start()
        yield f"[{host}]:{server.getsockname()[1]}" if ":" in host else f"{host}:{server.getsockname()[1]}"
        thread.join()


def test_what_is_an_answer(needs_process: None, table: Table) -> None:
    """DNS answers if one of its servers says that a name exists or that it does not."""
    for what, (code, answers) in CODES.items():
        for host in ("127.0.0.1", "::1"):
            with table.case(f"{what} ({host})"), dns(host, code) as server:
                asked = ["bash", str(ASK), "rules.ten-chars1.local", "127.0.0.1:1", server]
                assert (subprocess.run(asked, check=False).returncode == 0) is answers


@pytest.fixture
def cluster(needs_engine: None, rendering: Rendering, tmp_path: Path) -> Iterator[Cluster]:
    """A network without pods."""
    one = Cluster(rendering, tmp_path)
    tmp_path.chmod(0o755)
    docker("network", "create", one.network)
    try:
        yield one
    finally:
        for name in [*one.running]:
            one.kill(name)
        docker("network", "rm", one.network)


def listens(cluster: Cluster, pod: Pod) -> bool:
    """Whether the gateway answers for itself."""
    path = SERVICES["gateway"].probe.ready
    ask = ["docker", "exec", cluster.called(pod), "curl", "-fsS", f"http://127.0.0.1:6000{path}"]
    return subprocess.run(ask, capture_output=True, check=False).returncode == 0


def test_it_waits_while_dns_is_away(cluster: Cluster) -> None:
    """Nothing listens while no DNS server answers, so that no client meets 502; after a minute, nginx starts."""
    (pod,) = (one for one in pods(cluster.rendering) if one.name == "r-gateway-0")
    cluster.start(pod, "--dns", NOBODY)
    eventually(lambda: listens(cluster, pod), seconds=MINUTES)
    assert "DNS does not answer" in docker("logs", cluster.called(pod), check=False)
