"""Judges that the file of routes names, as `make up` hands them to Compose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.models import machine
from services.models.machine import GIB, Gpu
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load
from services.up import named_judges
from services.up.compose import composition
from services.up.compose.composition import assign_gpus
from services.up.compose.engine import Engine
from services.up.compose.project import Project
from services.up.model_servers import EMBEDDING
from tests.native.test_named_judges import EXTERNAL, KEY, TWO, routes

MODEL = "org/default"


def described(folder: Path, text: str = TWO, gpus: bool = False, **values: str) -> tuple[dict[str, Any], str]:
    """The services as Compose reads them from the file that is written for a file of routes, and its text."""
    run = RunDir(str(folder / "run"))
    run.make()
    settings = load(ROOT, {"REWARDSTACK_ROUTES": routes(folder, text), "JUDGE_MODEL": MODEL, **values})
    chosen = [server for server in named_judges.servers(settings, MODEL) if server != EMBEDDING]
    composition.write_secrets(settings, run)
    project = Project(Engine("docker", gpus), "mine")
    file = composition.describe(settings, run, project, chosen).write(run)
    found: dict[str, Any] = project.config([file], {})["services"]
    return found, file.read_text()


@pytest.mark.usefixtures("needs_compose")
def test_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further model is a service like the default judge, confined as it is, with its own model and replicas."""
    monkeypatch.setattr(machine, "gpus", list)
    found, text = described(tmp_path, JUDGE_VLLM_ARGS="--seed $x", LLM_JUDGE_SERVER_API_KEY="sesame")
    assert {name for name in found if name.startswith("judge")} == {"judge", "judge.small", "judge.small-2"}
    default = found["judge"]
    for name, model, replicas in (("judge.small", "org/small", 2), ("judge.small-2", "org/other", 1)):
        own = found[name]
        assert (own["command"], own["scale"]) == ([model, *default["command"][1:]], replicas)
        for part in ("image", "cap_drop", "security_opt", "healthcheck", "volumes", "secrets", "networks", "restart"):
            assert (name, part, own[part]) == (name, part, default[part])
    assert "--seed $x" in " ".join(default["command"])
    assert "sesame" not in text


@pytest.mark.usefixtures("needs_compose")
def test_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway is told of each path and of each service, by the balancing that is set; without names of none."""
    monkeypatch.setattr(machine, "gpus", list)
    variables = described(tmp_path, JUDGE_BALANCING="affinity")[0]["gateway"]["environment"]
    rows = [line.strip() for line in variables["MODEL_PATHS"].splitlines()]
    assert rows == ["/judges/exact judge;", "/judges/small judge.small;", "/judges/small-2 judge.small-2;"]
    assert "upstream judge.small {" in variables["MODEL_UPSTREAMS"]
    assert "server judge.small:8000 resolve max_conns=1024" in variables["MODEL_UPSTREAMS"]
    assert "hash $http_x_prompt_affinity;" in variables["MODEL_UPSTREAMS"]
    plain = described(tmp_path, "[routes]")[0]["gateway"]["environment"]
    assert (plain["MODEL_PATHS"], plain["MODEL_UPSTREAMS"]) == ("", "")


@pytest.mark.usefixtures("needs_compose")
def test_reward_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward model is a service as confined as the judge; reward server and gateway know its path."""
    monkeypatch.setattr(machine, "gpus", list)
    values = {"REWARD_MODEL_ID": "org/rm", "LLM_JUDGE_SERVER_API_KEY": "sesame-of-the-port"}
    found, _ = described(tmp_path, "[routes]", gpus=False, **values)
    own, judge = found["reward-model"], found["judge"]
    assert own["command"][:5] == ["org/rm", "--config", "/etc/vllm.yaml", "--runner", "pooling"]
    for part in ("image", "cap_drop", "security_opt", "healthcheck", "volumes", "secrets", "networks", "restart"):
        assert own[part] == judge[part], part
    assert found["gateway"]["environment"]["MODEL_PATHS"] == "/reward_models/reward_model reward-model;"
    url = "http://gateway:8000/reward_models/reward_model"
    assert {found[name]["environment"]["REWARD_MODEL_SERVER_URL"] for name in ("rules", "worker")} == {url}
    assert (tmp_path / "run/secrets/reward_model_server_api_key").read_text() == values["LLM_JUDGE_SERVER_API_KEY"]
    assert "reward-model" not in described(tmp_path, "[routes]")[0]


@pytest.mark.usefixtures("needs_compose")
def test_key_and_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every service that scores has the routes, their templates where the routes look for them, and keys as files."""
    monkeypatch.setattr(machine, "gpus", list)
    monkeypatch.setenv("HOSTED_KEY", KEY)
    (tmp_path / "wording").mkdir()
    (tmp_path / "wording/strict.txt").write_text("strict")
    found, text = described(tmp_path, EXTERNAL)
    assert KEY not in text
    for service in (found["rules"], found["worker"]):
        inside = service["environment"]["REWARDSTACK_ROUTES"]
        mounted = {mount["target"]: mount["source"] for mount in service["volumes"]}
        assert mounted[inside] == str(tmp_path / "routes.toml")
        assert mounted[str(Path(inside).parent / "wording/strict.txt")] == str(tmp_path / "wording/strict.txt")
        assert service["environment"]["HOSTED_KEY_FILE"] == "/run/secrets/judge_key_HOSTED_KEY"
        assert "judge_key_HOSTED_KEY" in [secret["source"] for secret in service["secrets"]]
    assert (tmp_path / "run/secrets/judge_key_HOSTED_KEY").read_text() == KEY
    described(tmp_path, TWO)
    assert not (tmp_path / "run/secrets/judge_key_HOSTED_KEY").exists()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"judge": "0", "judge.small": "1,2", "judge.small-2": "3"}),
        ({"JUDGE_REPLICAS": "2"}, {"judge": "0,1", "judge.small": "2,3", "judge.small-2": "4"}),
        ({"JUDGE_GPUS": "1,2"}, {"judge": "1,2", "judge.small": "0,3", "judge.small-2": "4"}),
        ({"EMBEDDING_GPU": "0"}, {"judge": "1", "judge.small": "2,3", "judge.small-2": "4"}),
    ],
)
def test_gpus_are_handed_out_once(tmp_path: Path, values: dict[str, str], expected: dict[str, str]) -> None:
    """Each judge's container has GPUs that no other one has; too few for all are refused."""
    settings = load(ROOT, {"REWARDSTACK_ROUTES": routes(tmp_path, TWO), **values})
    chosen, gpus = named_judges.servers(settings, MODEL), [Gpu(str(number), 80 * GIB) for number in range(5)]
    assert assign_gpus(settings, chosen, gpus) == expected
    assert assign_gpus(settings, chosen, []) == {}
    with pytest.raises(StackError, match="need"):
        assign_gpus(settings, chosen, gpus[:3])


@pytest.mark.usefixtures("needs_compose")
def test_on_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On GPUs a named judge's replicas are vLLM's own, in one container, as the default one's are."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu(str(number), 80 * GIB) for number in range(4)])
    found, _ = described(tmp_path, gpus=True)
    for name, gpus, replicas in (("judge", "0", "1"), ("judge.small", "1,2", "2"), ("judge.small-2", "3", "1")):
        command = found[name]["command"]
        assert (found[name]["scale"], command[command.index("--data-parallel-size") + 1]) == (1, replicas)
        [device] = found[name]["deploy"]["resources"]["reservations"]["devices"]
        assert device["device_ids"] == [gpus]
