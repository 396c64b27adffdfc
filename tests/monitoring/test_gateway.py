"""The gateway tells how it does in words that Prometheus reads, on a port of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from services.stack import packages
from services.stack.template import fill
from tests.monitoring.conftest import ROOT, Watch
from tests.support.servers import free_port, wait_for_port
from tests.support.waiting import eventually

TEMPLATE = ROOT / "helm/rewardstack/files/gateway/metrics.conf.template"
AROUND = "daemon off; pid nginx.pid; error_log stderr; events {} http {\n%s\n}\n"


@pytest.fixture
def gateway(needs_nginx: None, tmp_path: Path) -> Iterator[str]:
    """The URL of an nginx with nothing but its metrics."""
    nginx = packages.find()["nginx"]
    port = free_port()
    (tmp_path / "nginx.conf").write_text(AROUND % fill(TEMPLATE.read_text(), {"LISTEN_METRICS": f"127.0.0.1:{port}"}))
    process = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", "nginx.conf", "-e", "stderr"])
    wait_for_port(port)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def test_metrics(gateway: str) -> None:
    """The connections of this moment, and nothing else on that port."""
    reply = requests.get(f"{gateway}/metrics", timeout=60)
    families = {family.name: family.samples[0].value for family in text_string_to_metric_families(reply.text)}

    assert {"nginx_connections_active", "nginx_connections_waiting"} == families.keys()
    assert families["nginx_connections_active"] >= 1
    assert reply.headers["Content-Type"].startswith("text/plain")
    assert requests.get(f"{gateway}/", timeout=60).status_code == 404


def test_scrape(gateway: str, watch: Watch) -> None:
    """Prometheus takes it."""
    prometheus = watch(gateway=gateway)
    eventually(lambda: bool(prometheus.query('up{job="gateway"} == 1')), lambda: str(prometheus.query("up")))
    assert prometheus.query("nginx_connections_active")
