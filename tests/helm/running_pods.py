"""The pods of the chart as containers: `helm test`'s pod is green, and a replica that is gone loses nothing.

`make helm` runs this file, which `make test` does not collect: with models it takes a quarter of an hour.
"""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rewardstack import Request, score
from services.stack.rundir import ROOT
from services.stack.settings import read_dotenv
from tests.helm.pods import Cluster, Pod, cluster
from tests.helm.rendering import render
from tests.support import compose
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.timeout(1200)]

HERE = Path(__file__).parent
KEY = "a-key-of-this-test"
IMAGE = "rewardstack-pods:test"
"""Of this tree; that of a stack on this machine keeps its name."""
VLLM = "rewardstack-pods-vllm:test"
"""As its public image is, of whose files a pod's user can read all; a stand-in keeps the weights for root."""
BUILDING_SECONDS = 600


@dataclass(frozen=True)
class Scenario:
    """What runs, and which of it will be gone.

    Args:
        name: of its file of values.
        killed: one of two replicas.
        port: at which it tells its metrics.
        busy: that which counts what it works on.
        source: of samples that those score.
        samples: so many.
    """

    name: str
    killed: str
    port: int
    busy: str
    source: str
    samples: int


SCENARIOS = [
    Scenario("rules", "r-rules-0", 6000, "rewardstack_requests_in_progress", "math", 30000),
    Scenario("models", "r-judge-0", 8000, "vllm:num_requests_running", "llm_judge_remote", 60),
]


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda scenario: str(scenario.name))
def scenario(request: pytest.FixtureRequest) -> Scenario:
    """Each in turn."""
    found: Scenario = request.param
    return found


@pytest.fixture(scope="module")
def image(needs_engine: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The reward server's image, built as `make images` does."""
    run = tmp_path_factory.mktemp("run")
    command = [sys.executable, "-m", "services.up", "images"]
    environment = {**os.environ, "REWARDSTACK_IMAGE": IMAGE, "RUN_DIR": str(run)}
    subprocess.run(command, cwd=ROOT, env=environment, timeout=BUILDING_SECONDS, check=True)


@pytest.fixture(scope="module")
def vllm(needs_engine: None, scenario: Scenario) -> None:
    """The judge's image, where a scenario has one."""
    if scenario.name == "models":
        if lacks := compose.missing_models():
            pytest.skip(lacks)
        base = read_dotenv(ROOT / ".env")["VLLM_CPU_IMAGE"]
        recipe = f"FROM {base}\nRUN [ ! -d /models ] || chmod -R a+rX /models\n"
        command = ["docker", "build", "--tag", VLLM, "-"]
        subprocess.run(command, input=recipe, text=True, timeout=BUILDING_SECONDS, check=True)


@pytest.fixture(scope="module")
def pods(needs_helm: None, image: None, vllm: None, scenario: Scenario) -> Iterator[Cluster]:
    """The pods of a scenario, ready."""
    with cluster(render(HERE / f"pods-{scenario.name}-values.yaml")) as one:
        yield one


def test_helm_test(pods: Cluster) -> None:
    """The pod of `helm test` finds all that a whole stack must do."""
    (check,) = pods.rendering.of("Pod")
    done = pods.run(Pod("check", check["spec"], {}))
    assert done.returncode == 0, done.stdout


def test_a_replica_is_gone(pods: Cluster, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the samples that are scored while one of two replicas is killed at its work, every one has its verdict."""
    gateway = pods.address(pods.running["r-gateway-0"])
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://{gateway}:6000")
    monkeypatch.setenv("REWARD_SERVER_API_KEY", KEY)
    monkeypatch.setenv("REWARD_SERVER_TIMEOUT", "600")
    samples = [Request(scenario.source, f"{number}", f"{number}") for number in range(scenario.samples)]
    idle = work_of(pods, scenario)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        scored = pool.submit(score, samples)
        while work_of(pods, scenario) <= idle and not scored.done():
            time.sleep(0.02)
        assert not scored.done(), "the one to be killed had no work"
        pods.kill(scenario.killed)
        assert {one.status for one in scored.result(timeout=900)} == {"ok"}


def test_the_queue_is_away(pods: Cluster) -> None:
    """A worker whose queue is gone is not ready, but is not restarted: it waits, and a restart would not help."""
    worker = pods.running["r-worker-0"]
    pods.kill("r-queue-0")
    eventually(lambda: not pods.passes(worker, "readinessProbe"))
    assert pods.passes(worker, "startupProbe")
    assert pods.passes(worker, "livenessProbe")


def work_of(pods: Cluster, scenario: Scenario) -> float:
    """What the replica that is to be killed works on, as it says itself."""
    url = f"http://{pods.address(pods.running[scenario.killed])}:{scenario.port}/metrics"
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(scenario.busy))
