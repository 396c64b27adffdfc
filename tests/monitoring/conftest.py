"""Run a real Prometheus with the stack's configuration, except for the services' addresses and the intervals."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from tests.support.servers import Program, free_port

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "services/monitoring/prometheus.yml"
ALERTS = ROOT / "helm/rewardstack/files/monitoring/alerts.yml"
START_SECONDS = 200


class Prometheus(Program):
    """A Prometheus that scrapes every second.

    Args:
        folder: folder for its files.
        services: base URL of a replica by the name of its service; other services are not scraped.
        key: API key for the reward server.
    """

    def __init__(self, folder: Path, services: Mapping[str, str], key: str = "") -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(folder, services)))
        (folder / "key").write_text(f"{key}\n")
        shutil.copy(ALERTS, folder)
        arguments = ("--config.file", str(folder / "prometheus.yml"), "--storage.tsdb.path", str(folder / "data"))
        with (log := folder / "prometheus.log").open("wb") as out:
            self.process = subprocess.Popen(
                ["prometheus", *arguments, f"--web.listen-address=127.0.0.1:{port}"], stdout=out, stderr=out
            )
        self._log = log
        self._wait()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current result of a PromQL expression.

        Raises:
            AssertionError: the expression is invalid.
        """
        reply = requests.get(f"{self.url}/api/v1/query", {"query": expression}, timeout=30).json()
        assert reply["status"] == "success", f"{expression}: {reply.get('error')}"
        samples: list[dict[str, Any]] = reply["data"]["result"]
        return samples

    def names(self) -> set[str]:
        """Return the names of all metrics that it has scraped."""
        return set(requests.get(f"{self.url}/api/v1/label/__name__/values", timeout=30).json()["data"])

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while True:
            assert self.process.poll() is None and time.monotonic() < end, self._log.read_text()
            try:
                if requests.get(f"{self.url}/-/ready", timeout=60).status_code == 200:
                    return
            except requests.ConnectionError:
                time.sleep(0.05)


def configuration(folder: Path, services: Mapping[str, str]) -> dict[str, Any]:
    """Return the stack's configuration with short intervals, and for `services` only."""
    whole: dict[str, Any] = yaml.safe_load(PROMETHEUS.read_text())
    whole["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    jobs = [job for job in whole["scrape_configs"] if job["job_name"] in services]
    for job in jobs:
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": [urlsplit(services[job["job_name"]]).netloc]}]
        if "authorization" in job:
            job["authorization"] = {"credentials_file": str(folder / "key")}
    return {**whole, "scrape_configs": jobs}


Watch = Callable[..., Prometheus]


@pytest.fixture(scope="module")
def watch(needs_redis: None, needs_prometheus: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Return a function that starts a Prometheus; its keyword arguments are base URLs of services by name."""
    started: list[Prometheus] = []

    def start(key: str = "", **services: str) -> Prometheus:
        started.append(Prometheus(tmp_path_factory.mktemp("prometheus"), services, key))
        return started[-1]

    yield start
    for one in started:
        one.kill()
