"""What `make up` hands to Compose."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.models import machine
from services.models.machine import GIB, Gpu
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load
from services.up.compose import commands, composition
from services.up.compose.composition import Composition
from services.up.compose.engine import Engine
from services.up.compose.project import ComposeRecord, Project
from services.up.model_servers import EMBEDDING, JUDGE, ModelServer
from tests.support.secret_settings import all_secrets

BOTH = [JUDGE, EMBEDDING]
SHIPPED: dict[str, str] = {}
SCORING = ("rules", "worker")

pytestmark = pytest.mark.usefixtures("needs_compose")


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests name the GPUs that there are."""
    monkeypatch.setattr(machine, "gpus", list)
    monkeypatch.delenv("HF_TOKEN", raising=False)


def described(
    folder: Path, chosen: list[ModelServer], values: Mapping[str, str] = SHIPPED, gpus: bool = False
) -> Composition:
    """What Compose is handed for a stack with these model servers and settings."""
    run = RunDir(str(folder / "run"))
    run.make()
    return composition.describe(load(ROOT, values), run, Project(Engine("docker", gpus), "mine"), chosen)


def written(folder: Path, values: Mapping[str, str] = SHIPPED) -> dict[str, Any]:
    """The services of the file that Compose starts, once keys are written."""
    made, run = described(folder, [], values), RunDir(str(folder / "run"))
    composition.write_secrets(load(ROOT, values), run)
    found: dict[str, Any] = json.loads(made.write(run).read_text())["services"]
    return found


@pytest.mark.parametrize(
    ("values", "service", "secret"),
    [
        ({}, "rules", "reward_queue_url"),
        ({}, "queue", "queue_server_password"),
        ({"REWARD_SERVER_API_KEYS": "a-key-of-the-tests"}, "rules", "reward_server_api_keys"),
        ({"REWARD_CACHE_SECRET": "s"}, "worker", "reward_cache_secret"),
        ({"CACHE_PORT": "6379", "CACHE_PASSWORD": "word"}, "cache", "cache_password"),
        ({"CACHE_PORT": "6379"}, "cache", "cache_server_password"),
        ({}, "gateway", ""),
        ({"MONITORING": "on"}, "grafana", "grafana_admin_password"),
    ],
)
def test_files(tmp_path: Path, values: dict[str, str], service: str, secret: str) -> None:
    """Each compose file comes with the setting that asks for it."""
    found = described(tmp_path, BOTH, values).services[service].get("secrets", [])
    assert secret in [one["source"] for one in found] if secret else found == []


def test_ports_that_ask_for_a_key(tmp_path: Path) -> None:
    """The gateway asks for a key at the ports of services that have one, and checks host names at the others."""
    made = described(tmp_path, BOTH, {"REWARD_SERVER_API_KEYS": "a-key-of-the-tests"})
    variables = made.services["gateway"]["environment"]
    asks = [variables[f"{service}_AUTH_REQUEST_URI"] for service in ("RULES", "JUDGE", "EMBEDDING")]
    assert asks == ["/key", "off", "off"]


def test_no_secret_in_variables(tmp_path: Path) -> None:
    """The compose file holds no key and no password: its variables end up where `docker inspect` shows them."""
    assert "sesame" not in json.dumps(described(tmp_path, BOTH, all_secrets("sesame")).model)


@pytest.mark.parametrize(
    ("runtime", "there", "gpu_file"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_gpus(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runtime: bool,
    there: bool,
    gpu_file: bool,
) -> None:
    """GPUs are used where the machine has some and Docker can hand them on; it says where it cannot."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu("0", 80 * GIB)] if there else [])
    made = described(tmp_path, BOTH, gpus=runtime)
    assert ("deploy" in made.services["judge"]) == gpu_file
    assert ("no nvidia runtime" in composition.unused_gpus(Engine("docker", runtime))) == (there and not runtime)


def test_model_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs that cannot hold the large judge have the small one, unless a model is named."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu("0", 24 * GIB)])
    for values, model in (({}, load(ROOT, {})["JUDGE_CPU_MODEL"]), ({"JUDGE_MODEL": "org/m"}, "org/m")):
        assert described(tmp_path, BOTH, values, gpus=True).services["judge"]["command"][0] == model


def test_too_few_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More replicas than GPUs are refused before anything starts."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu("0", 80 * GIB)])
    with pytest.raises(StackError, match="2 replicas x 1 GPUs need 2 GPUs"):
        described(tmp_path, BOTH, {"JUDGE_REPLICAS": "2"}, gpus=True)


@pytest.mark.parametrize(
    ("chosen", "values", "url"),
    [
        (BOTH, {}, "http://gateway:8000"),
        ([EMBEDDING], {}, ""),
        ([EMBEDDING], {"LLM_JUDGE_SERVER_URL": "http://node-7:8000"}, "http://node-7:8000"),
        (BOTH, {"LLM_JUDGE_SERVER_URL": "http://localhost:8000"}, "http://gateway:8000"),
    ],
)
def test_where_the_judge_is(tmp_path: Path, chosen: list[ModelServer], values: dict[str, str], url: str) -> None:
    """The containers ask the stack's own judge, an external one, or none; a shell's localhost never reaches them."""
    found = described(tmp_path, chosen, values).services
    assert ("judge" in found, found["rules"]["environment"]["LLM_JUDGE_SERVER_URL"]) == (JUDGE in chosen, url)


def test_limits_follow(tmp_path: Path) -> None:
    """A Redis has more memory than its `maxmemory`."""
    found = described(tmp_path, BOTH, {"CACHE_MAX_MEMORY": "4GB", "QUEUE_MAX_MEMORY": "100mb"}).services
    assert [int(found[name]["mem_limit"]) for name in ("cache", "queue")] == [8 * GIB, 300 * 2**20]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback(tmp_path: Path, host: str) -> None:
    """A judge on this machine's loopback is refused: containers do not reach it."""
    with pytest.raises(StackError, match="LLM_JUDGE_SERVER_URL: .* is on this machine's loopback"):
        described(tmp_path, [], {"LLM_JUDGE_SERVER_URL": f"http://{host}:9000"})


def test_published_ports(tmp_path: Path) -> None:
    """The gateway's ports, the cache's with a password; monitoring stays on loopback."""
    cache = {"CACHE_PORT": "6379", "CACHE_PASSWORD": "word"}
    made = described(tmp_path, BOTH, {**cache, "MONITORING": "on", "BIND_ADDRESS": "0.0.0.0"})
    everyone = dict.fromkeys(("REWARD_PORT", "PAGE_PORT", "JUDGE_PORT", "EMBEDDING_PORT", "CACHE_PORT"), "0.0.0.0")
    loopback = dict.fromkeys(("PROMETHEUS_PORT", "GRAFANA_PORT"), "127.0.0.1")
    assert {name: address for name, (address, _) in made.ports.items()} == everyone | loopback


def test_users_files(tmp_path: Path) -> None:
    """The files that settings name are mounted under paths that the containers' settings name."""
    mine, yours = (tmp_path / folder / "$rewards.py" for folder in ("a", "b"))
    for file in (mine, yours):
        file.parent.mkdir()
        file.write_text("")
    made = written(tmp_path, {"REWARD_FUNCTIONS": f"{mine}{os.pathsep}{yours}"})
    for name in SCORING:
        mounted = {volume["target"]: volume for volume in made[name]["volumes"]}
        targets = made[name]["environment"]["REWARD_FUNCTIONS"].split(os.pathsep)
        assert [mounted[path]["source"] for path in targets] == [str(file).replace("$", "$$") for file in (mine, yours)]
        assert all(mounted[path]["read_only"] for path in targets)
    assert not any("rewards.py" in volume["target"] for volume in made["cache"]["volumes"])


def test_labels_follow_what_is_read(tmp_path: Path) -> None:
    """The label of a service changes with its key or its file, and another's does not; it holds nothing of a key."""
    functions = tmp_path / "mine.py"
    functions.write_text("")

    def labels(key: str) -> dict[str, str]:
        made = written(tmp_path, {"REWARD_SERVER_API_KEYS": key, "REWARD_FUNCTIONS": str(functions)})
        assert key not in json.dumps(made)
        return {name: service["labels"][composition.LABEL] for name, service in made.items()}

    first = labels("first-key-of-tests")
    assert labels("first-key-of-tests") == first
    changed = labels("second-key-of-tests")
    assert (changed["rules"] != first["rules"], changed["cache"]) == (True, first["cache"])
    functions.write_text("# changed")
    assert labels("second-key-of-tests")["rules"] != changed["rules"]


def test_file_is_a_compose_file(tmp_path: Path) -> None:
    """Compose reads back from the written file what it holds, and finds the same services in it."""
    made = written(tmp_path, {"MONITORING": "on", "LLM_JUDGE_QUERY": "a=$b"})
    project = Project(Engine("docker", gpus=False), "mine")
    read = project.config([tmp_path / "run" / composition.FILE], {})["services"]
    assert read.keys() == made.keys()
    assert read["rules"]["environment"]["LLM_JUDGE_QUERY"] == "a=$b"
    assert {service["restart"] for service in read.values()} == {"no"}


def test_secret_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are files in a directory that its owner alone can enter; `make down` removes them."""
    run = RunDir(str(tmp_path))
    run.make()
    composition.write_secrets(load(ROOT, {"CACHE_PASSWORD": "word", "LLM_JUDGE_SERVER_API_KEY": "key"}), run)
    folder = run.secrets
    before = (folder / "cache_server_password").read_text()
    composition.write_secrets(load(ROOT, {"CACHE_PASSWORD": "word", "LLM_JUDGE_SERVER_API_KEY": "key"}), run)
    assert (folder / "cache_server_password").read_text() == before
    assert folder.stat().st_mode & 0o777 == 0o700
    found = {file.name: file.read_text() for file in folder.iterdir() if file.read_text()}
    own = {name: found[f"{name}_server_password"] for name in ("cache", "queue")}
    assert {len(password) for password in own.values()} == {64} and own["cache"] != own["queue"]
    assert len(found["code_sandbox_api_key"]) == 64
    assert found == {
        "cache_password": "word",
        "code_sandbox_api_key": found["code_sandbox_api_key"],
        "llm_judge_server_api_key": "key",
        **{f"{name}_server_password": password for name, password in own.items()},
        **{f"reward_{name}_url": f"redis://server:{password}@{name}:6379/0" for name, password in own.items()},
    }
    stopped = SimpleNamespace(containers=list)
    monkeypatch.setattr(commands, "_load", lambda run: (ComposeRecord("mine", []), stopped))
    commands.down(run)
    assert not folder.exists()
