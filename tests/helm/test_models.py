"""Model servers: where models are kept, what replicas share, and which flags they are started with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.stack.services_table import SERVICES
from tests.helm.rendering import CHART, Object, Rendering, render

BASE = {"rules": {"image": "rewardstack:test"}}
WITH_KEYS = CHART / "files/models/with_keys.sh"

Rendered = Callable[[dict[str, Any]], Rendering]


@pytest.fixture
def rendered(needs_helm: None) -> Rendered:
    """Render the chart with some values and an image of the reward server."""
    return lambda values: render(yaml.safe_dump({**BASE, **values}))


def spec(rendering: Rendering, service: str) -> Object:
    """The pod's specification of a service."""
    return dict(rendering.one("Deployment", service)["spec"]["template"]["spec"])


def volume(rendering: Rendering, service: str) -> Object:
    """The volume in which a service keeps models."""
    (found,) = (one for one in spec(rendering, service)["volumes"] if one["name"] == "models")
    return dict(found)


def test_models_without_a_volume(rendered: Rendered) -> None:
    """A pod that keeps its model itself asks for storage of a stated size, by its device, and can use no more."""
    found = rendered(
        {"embedding": {"device": "cpu"}, "judges": {"default": {}, "small": {"gpu": {"ephemeralStorage": "20Gi"}}}}
    )
    for service, size in (("judge", "100Gi"), ("judge-small", "20Gi"), ("embedding", "10Gi")):
        (container,) = spec(found, service)["containers"]
        assert container["resources"]["requests"]["ephemeral-storage"] == size, service
        assert volume(found, service) == {"name": "models", "emptyDir": {"sizeLimit": size}}
    assert not [*found.of("PersistentVolumeClaim")]


def test_a_claim_of_the_chart(rendered: Rendered) -> None:
    """A claim with size and access mode is made for each service; of one for a single node no two pods run."""
    shared = {"size": "200Gi", "accessMode": "ReadWriteMany", "className": "shared"}
    own = {"size": "20Gi", "accessMode": "ReadWriteOnce"}
    found = rendered(
        {
            "judge": {"replicas": 2, "modelCache": {"claim": shared}},
            "embedding": {"device": "cpu", "modelCache": {"claim": own}},
        }
    )
    claim = found.one("PersistentVolumeClaim", "judge-models")["spec"]
    assert claim == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared",
        "resources": {"requests": {"storage": "200Gi"}},
    }
    assert volume(found, "judge") == {"name": "models", "persistentVolumeClaim": {"claimName": "r-judge-models"}}
    (container,) = spec(found, "judge")["containers"]
    assert "ephemeral-storage" not in container["resources"]["requests"]
    strategy = found.one("Deployment", "embedding")["spec"]["strategy"]
    assert strategy == {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_only_models_are_on_a_shared_volume(rendered: Rendered) -> None:
    """The hub's files are on the volume, and compiled code is in the pod."""
    found = rendered({"judge": {"modelCache": {"persistentVolumeClaim": {"claimName": "m"}}}})
    (container,) = spec(found, "judge")["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    (mounted,) = (one["mountPath"] for one in container["volumeMounts"] if one["name"] == "models")
    on_it = {name for name, value in variables.items() if value.startswith(mounted)}
    assert on_it == {"HF_HOME", "MODEL_CACHE"}


def test_flags_of_a_judge(rendered: Rendered) -> None:
    """A judge is started as the services table says, with its model's own length; flags of the values come last."""
    values = {"gpus": 2, "extraArgs": ["--max-model-len", 16384]}
    (container,) = spec(rendered({"judge": values, "settings": {"DRAIN_TIMEOUT": 200}}), "judge")["containers"]
    command = container["command"]
    assert command[2:6] == ["vllm", "serve", "Qwen/Qwen3-32B", "--config"]
    assert command[command.index("--max-model-len") + 1] == "auto"
    assert command[command.index("--shutdown-timeout") + 1] == "200"
    assert command[command.index("--tensor-parallel-size") + 1] == "2"
    assert command[-2:] == ["--max-model-len", "16384"]
    assert {option.flag for option in SERVICES["judge"].options} - {*command} == {"--dtype"}


def test_judges_on_cpus_share_a_node(rendered: Rendered) -> None:
    """Judges on CPUs are bound to no cores, which two of a node would choose alike; requests set their threads."""
    found = rendered({"judge": {"device": "cpu"}, "judges": {"default": {"replicas": 2}, "large": {"device": "gpu"}}})
    bound = {}
    for service in ("judge", "judge-large"):
        (container,) = spec(found, service)["containers"]
        variables = {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}
        bound[service] = [variables.get(name) for name in ("VLLM_CPU_OMP_THREADS_BIND", "OMP_NUM_THREADS")]
    assert bound == {
        "judge": ["nobind", {"resourceFieldRef": {"resource": "requests.cpu"}}],
        "judge-large": [None, None],
    }


def test_flags_of_a_judge_restart_no_embedding_server(needs_helm: None, tmp_path: Path) -> None:
    """A change of vLLM's flags restarts the judges that read them, and nothing else."""
    copy = shutil.copytree(CHART, tmp_path / "chart")
    with (copy / "files/judge/vllm-gpu.yaml").open("a") as flags:
        flags.write("seed: 1\n")
    values = CHART / "ci/operators-values.yaml"
    before, after = (
        {one["metadata"]["name"]: one["spec"]["template"] for one in render(values, chart=chart).of("Deployment")}
        for chart in (CHART, copy)
    )
    assert {name for name in before if before[name] != after[name]} == {"r-judge", "r-judge-small"}


@pytest.mark.parametrize(
    ("folder", "variables", "warned"),
    [("", {}, False), ("absent", {}, True), ("absent", {"HF_HUB_OFFLINE": "1"}, False)],
)
def test_a_volume_that_cannot_be_written(
    needs_process: None, tmp_path: Path, folder: str, variables: dict[str, str], warned: bool
) -> None:
    """A model server that cannot write to its volume says so first, with the remedy, unless it downloads nothing."""
    environment = {"PATH": "/usr/bin:/bin", "MODEL_CACHE": str(tmp_path / folder), **variables}
    done = subprocess.run(["sh", str(WITH_KEYS), "true"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "set podSecurityContext" in done.stderr) == (0, warned)
