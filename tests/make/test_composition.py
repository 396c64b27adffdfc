"""What `make up` hands to Compose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.models import machine
from services.models.machine import GIB, Gpu
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load
from services.up.compose import commands, composition, override, secrets, users_files
from services.up.compose.composition import Composition
from services.up.compose.engine import Engine
from services.up.compose.project import Container, Project
from services.up.compose.record import Composed
from services.up.model_servers import EMBEDDING, JUDGE, ModelServer
from tests.support.secret_settings import all_secrets

BOTH = [JUDGE, EMBEDDING]
SHIPPED: dict[str, str] = {}


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests name the GPUs that there are."""
    monkeypatch.setattr(machine, "gpus", list)
    monkeypatch.delenv("HF_TOKEN", raising=False)


def described(
    folder: Path, chosen: list[ModelServer], values: Mapping[str, str] = SHIPPED, gpus: bool = False
) -> Composition:
    """What Compose is handed for a stack with these model servers and settings."""
    run = RunDir(str(folder))
    run.make()
    return composition.describe(load(ROOT, values), run, Project(Engine("docker", gpus), "mine"), chosen)


def names(made: Composition) -> list[str]:
    """Of its files."""
    return [file.name for file in made.files]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"REWARD_SERVER_API_KEYS": "a-key-of-the-tests"}, ["compose.keys.yaml"]),
        ({"REWARD_CACHE_SECRET": "s"}, ["compose.keys.yaml"]),
        ({"CACHE_PORT": "6379", "CACHE_PASSWORD": "word"}, ["compose.cache.yaml"]),
        ({"CACHE_PORT": "6379"}, []),
        ({"MONITORING": "on"}, ["compose.monitoring.yaml"]),
    ],
)
def test_files(tmp_path: Path, values: dict[str, str], expected: list[str]) -> None:
    """Each file comes with the setting that asks for it."""
    assert names(described(tmp_path, BOTH, values)) == ["compose.yaml", *expected]


def test_ports_that_ask_for_a_key(tmp_path: Path) -> None:
    """The gateway asks for a key at the ports of services that have one, and looks at host names at the others."""
    given = described(tmp_path, BOTH, {"REWARD_SERVER_API_KEYS": "a-key-of-the-tests"}).gateway
    asks = [given[f"{service}_AUTH_REQUEST_URI"] for service in ("RULES", "JUDGE", "EMBEDDING")]
    assert asks == ["/key", "off", "off"]


def test_no_secret_in_variables(tmp_path: Path) -> None:
    """Compose is given no key and no password: its variables end up where `docker inspect` shows them."""
    environment = described(tmp_path, BOTH, all_secrets("sesame")).environment
    assert "sesame" not in "".join(environment.values())


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
    assert ("compose.gpu.yaml" in names(described(tmp_path, BOTH, gpus=runtime))) == gpu_file
    assert ("no nvidia runtime" in composition.unused_gpus(Engine("docker", runtime))) == (there and not runtime)


def test_model_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs that cannot hold the large judge have the small one, unless a model is named."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu("0", 24 * GIB)])
    assert described(tmp_path, BOTH, gpus=True).environment["JUDGE_MODEL"] == load(ROOT, {})["JUDGE_CPU_MODEL"]
    assert described(tmp_path, BOTH, {"JUDGE_MODEL": "org/m"}, gpus=True).environment["JUDGE_MODEL"] == "org/m"


def test_too_few_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More replicas than GPUs are refused before anything starts."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu("0", 80 * GIB)])
    with pytest.raises(StackError, match="2 replicas on 1 GPUs each need 2 GPUs"):
        described(tmp_path, BOTH, {"JUDGE_REPLICAS": "2"}, gpus=True)


@pytest.mark.parametrize(
    ("chosen", "values", "profiles", "own", "elsewhere"),
    [
        (BOTH, {}, "judge,embedding", "http://gateway:8000", ""),
        ([EMBEDDING], {}, "embedding", "", ""),
        ([EMBEDDING], {"LLM_JUDGE_SERVER_URL": "http://node-7:8000"}, "embedding", "", "http://node-7:8000"),
        (BOTH, {"LLM_JUDGE_SERVER_URL": "http://localhost:8000"}, "judge,embedding", "http://gateway:8000", ""),
    ],
)
def test_where_the_judge_is(
    tmp_path: Path, chosen: list[ModelServer], values: dict[str, str], profiles: str, own: str, elsewhere: str
) -> None:
    """The containers ask the stack's own judge, one elsewhere, or none; a shell's localhost never reaches them."""
    environment = described(tmp_path, chosen, values).environment
    found = [environment[name] for name in ("COMPOSE_PROFILES", "STACK_JUDGE_URL", "LLM_JUDGE_SERVER_URL")]
    assert found == [profiles, own, elsewhere]


def test_limits_follow(tmp_path: Path) -> None:
    """A container outlives the requests that it drains, and has more memory than Redis is told to use of it."""
    values = {"CACHE_MAX_MEMORY": "4GB", "QUEUE_MAX_MEMORY": "100mb"}
    environment = described(tmp_path, BOTH, values).environment
    assert [int(environment[name]) for name in ("CACHE_MEMORY", "QUEUE_MEMORY")] == [
        8 * GIB,
        300 * 2**20,
    ]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback(tmp_path: Path, host: str) -> None:
    """A judge on this machine's loopback is refused: containers do not reach it."""
    with pytest.raises(StackError, match="LLM_JUDGE_SERVER_URL: .* is this machine's loopback"):
        described(tmp_path, [], {"LLM_JUDGE_SERVER_URL": f"http://{host}:9000"})


def test_published_ports(tmp_path: Path) -> None:
    """The gateway's three ports, the cache's with a password; monitoring stays on loopback."""
    cache = {"CACHE_PORT": "6379", "CACHE_PASSWORD": "word"}
    made = described(tmp_path, BOTH, {**cache, "MONITORING": "on", "BIND_ADDRESS": "0.0.0.0"})
    everyone = dict.fromkeys(("REWARD_PORT", "JUDGE_PORT", "EMBEDDING_PORT", "CACHE_PORT"), "0.0.0.0")
    loopback = dict.fromkeys(("PROMETHEUS_PORT", "GRAFANA_PORT"), "127.0.0.1")
    assert {name: address for name, (address, _) in made.ports.items()} == everyone | loopback


def test_users_files(tmp_path: Path) -> None:
    """The files that settings name are mounted under paths that the containers' settings name."""
    mine, yours = (tmp_path / folder / "$rewards.py" for folder in ("a", "b"))
    for file in (mine, yours):
        file.parent.mkdir()
        file.write_text("")
    run = RunDir(str(tmp_path / "run"))
    run.make()
    mounted = users_files.mounts(load(ROOT, {"REWARD_FUNCTIONS": f"{mine}:{yours}"}))
    inside = mounted.settings["REWARD_FUNCTIONS"].split(":")
    assert [mounted.files[path] for path in inside] == [mine, yours]
    written = json.loads(override.write(run, {"rules": {}, "cache": {}}, mounted).read_text())["services"]
    assert [volume["source"] for volume in written["rules"]["volumes"]] == [
        str(file).replace("$", "$$") for file in (mine, yours)
    ]
    assert all(volume["read_only"] for volume in written["rules"]["volumes"])
    assert written["cache"]["volumes"] == []


def test_labels_follow_what_is_read(tmp_path: Path) -> None:
    """The label of a service changes with its key or its file, and another's does not; it holds nothing of a key."""
    run = RunDir(str(tmp_path))
    run.make()
    functions = tmp_path / "mine.py"
    functions.write_text("")
    options = tmp_path / "redis.conf"
    options.write_text("")
    services = {
        "rules": {"secrets": [{"source": "reward_server_api_keys"}]},
        "cache": {"volumes": [{"type": "bind", "source": str(options), "target": "/etc/redis.conf"}]},
    }

    def labels(key: str) -> dict[str, str]:
        settings = load(ROOT, {"REWARD_SERVER_API_KEYS": key, "REWARD_FUNCTIONS": str(functions)})
        secrets.write(settings, run)
        text = override.write(run, services, users_files.mounts(settings)).read_text()
        assert key not in text
        return {name: service["labels"][override.LABEL] for name, service in json.loads(text)["services"].items()}

    first = labels("first-key-of-tests")
    assert labels("first-key-of-tests") == first
    changed = labels("second-key-of-tests")
    assert (changed["rules"] != first["rules"], changed["cache"]) == (True, first["cache"])
    functions.write_text("# changed")
    assert labels("second-key-of-tests")["rules"] != changed["rules"]
    options.write_text("maxmemory 1gb")
    assert labels("second-key-of-tests")["cache"] != first["cache"]


def test_secret_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are files in a directory that its owner alone can enter; `make down` removes them."""
    run = RunDir(str(tmp_path))
    run.make()
    secrets.write(load(ROOT, {"CACHE_PASSWORD": "word", "LLM_JUDGE_SERVER_API_KEY": "key"}), run)
    folder = secrets.folder(run)
    before = (folder / "cache_server_password").read_text()
    secrets.write(load(ROOT, {"CACHE_PASSWORD": "word", "LLM_JUDGE_SERVER_API_KEY": "key"}), run)
    assert (folder / "cache_server_password").read_text() == before
    assert folder.stat().st_mode & 0o777 == 0o700
    found = {file.name: file.read_text() for file in folder.iterdir() if file.read_text()}
    own = found["cache_server_password"]
    assert len(own) == 64
    assert found == {
        "cache_password": "word",
        "cache_server_password": own,
        "llm_judge_server_api_key": "key",
        "reward_cache_url": f"redis://server:{own}@cache:6379/0",
    }
    stopped = SimpleNamespace(containers=list)
    monkeypatch.setattr(commands, "_recall", lambda run: (Composed("mine", []), stopped))
    commands.down(run)
    assert not folder.exists()


def test_log_of_this_start(tmp_path: Path) -> None:
    """Of a container that was started once more, nothing is looked at that it said before."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\nif [ "$1" = inspect ]; then echo 2026-01-02T03:04:05.6Z; else echo "$@"; fi\n')
    docker.chmod(0o755)
    judge = Container("mine-judge-1", "judge", "4711", "exited", "", "", ())
    said = Project(Engine(str(docker), gpus=False), "mine").log(judge)
    assert said.split()[:2] == ["logs", "--since=2026-01-02T03:04:05.6Z"] and said.split()[-1] == "4711"
