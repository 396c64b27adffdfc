"""compose.monitoring.yaml: who is asked is there to answer, and nobody outside the machine sees what is told."""

from __future__ import annotations

import pytest
import yaml

from tests.compose.config import services
from tests.monitoring.conftest import PROMETHEUS

FILES = ("compose.yaml", "compose.monitoring.yaml")

pytestmark = pytest.mark.usefixtures("needs_compose")


def test_published_on_loopback() -> None:
    """Prometheus and Grafana are published on loopback, also where the gateway is open to all."""
    found = services(*FILES, BIND_ADDRESS="0.0.0.0", PROMETHEUS_PORT="19090", GRAFANA_PORT="13000")
    ports = {name: found[name]["ports"] for name in ("prometheus", "grafana")}
    assert {(port["host_ip"], port["published"]) for (port,) in ports.values()} == {
        ("127.0.0.1", "19090"),
        ("127.0.0.1", "13000"),
    }


def test_gateway_has_its_metrics_beside_all_else() -> None:
    """The gateway includes what it includes without monitoring, and its metrics; no port of theirs is published."""
    with_it, without = (services(*files)["gateway"] for files in (FILES, FILES[:1]))
    assert with_it["environment"]["SERVICES"] == f"{without['environment']['SERVICES']} include metrics.conf;"
    assert with_it["ports"] == without["ports"]


def test_who_is_asked() -> None:
    """Prometheus asks services that there are, in networks that it shares, at the ports that they are given."""
    found = services(*FILES, COMPOSE_PROFILES="judge,reward-model,embedding")
    jobs = yaml.safe_load(PROMETHEUS.read_text())["scrape_configs"]
    asked = {job["job_name"]: job["dns_sd_configs"][0] for job in jobs if "dns_sd_configs" in job}
    for name, by_dns in asked.items():
        assert by_dns["names"] == [name]
        assert set(found[name]["networks"]) & set(found["prometheus"]["networks"])
    ports = {name: str(by_dns["port"]) for name, by_dns in asked.items()}
    gateway = found["gateway"]["environment"]
    for name in ("rules", "judge", "embedding"):
        assert f"{name}:{ports[name]} resolve" == gateway[f"{name.upper()}_SERVER"]
    assert ports["worker"] == found["worker"]["environment"]["WORKER_METRICS_PORT"]
    assert ports["gateway"] == gateway["LISTEN_METRICS"]
