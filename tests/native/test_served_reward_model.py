"""The reward model of `REWARD_MODEL_ID`, as `make up` starts it: program, gateway, keys, GPUs; nothing is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from services.judge import engine, model
from services.judge.engine import Vllm
from services.models import machine
from services.models.machine import GIB, Gpu
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.up import model_servers, named_judges, preflight
from services.up.model_servers import EMBEDDING, JUDGE, REWARD_MODEL
from services.up.native import stack
from services.up.native.stack import Stack
from tests.native.nginx import load
from tests.native.test_programs import FOUND, write

URL = "REWARD_MODEL_SERVER_URL"
PORT_KEY = "sesame-of-the-judges-port"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run directory."""
    made = RunDir(str(tmp_path / "run"))
    made.make()
    return made


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vLLM for GPUs, a hub that has every model, and a machine without GPUs."""
    monkeypatch.setattr(engine, "find", lambda python: Vllm(sys.executable, "0.32.0"))
    monkeypatch.setattr(model, "_check_availability", lambda asked, python: "reachable")
    monkeypatch.setattr(machine, "gpus", list)


def described(run: RunDir, **values: object) -> Stack:
    """A stack with the reward model, and a judge unless JUDGE is off."""
    settings = load(
        **{"REWARD_MODEL_ID": "org/rm", "JUDGE_MODEL": "org/judge", "EMBEDDING": "off", "JUDGE": "on", **values}
    )
    choice = model_servers.choose(settings, (), named_judges.servers(settings, "org/judge"), lambda *_: "")
    return stack.describe(settings, run, FOUND, choice.chosen, None)


def test_program(run: RunDir) -> None:
    """It is a pooling vLLM on a socket, whose flags the judge's do not change; the user's own come last."""
    made = described(run, REWARD_MODEL_VLLM_ARGS="--convert classify", JUDGE_VLLM_ARGS="--seed 7", JUDGE_DTYPE="half")
    write(made, run)
    command = json.loads(run.program("reward-model").read_text())["command"]
    assert command[command.index("--served-model-name") + 1] == "org/rm"
    assert command[command.index("--uds") + 1] == str(run.socket("reward-model"))
    assert " ".join(command).endswith("--convert classify")
    assert "--runner pooling --dtype auto --max-model-len auto" in " ".join(command)
    assert not {"--seed", "half"} & {*command}


@pytest.mark.parametrize("judge", ["on", "off"])
def test_gateway(run: RunDir, judge: str) -> None:
    """It is asked at the judge's port, below a path of its own, with a judge and without."""
    made = described(run, JUDGE=judge)
    lines = [line.strip() for line in made.gateway["judge.conf"].splitlines()]
    assert "/reward_models/reward_model reward-model;" in lines
    at = lines.index("upstream reward-model {")
    assert f"server unix:{run.socket('reward-model')} max_fails=0;" in lines[at : lines.index("}", at)]
    address = f"http://localhost:{made.ports['JUDGE_PORT'][1]}/reward_models/reward_model"
    assert made.urls[URL] == address
    [rules] = [program for program in made.programs if program.name == "rules"]
    assert rules.environment[URL] == address


def test_key(run: RunDir) -> None:
    """Reward server and workers ask it with the key of the judge's port."""
    made = described(run, LLM_JUDGE_SERVER_API_KEY=PORT_KEY)
    write(made, run)
    for name in ("rules", "worker"):
        environment = json.loads(run.program(name).read_text())["environment"]
        assert Path(environment["REWARD_MODEL_SERVER_API_KEY_FILE"]).read_text() == PORT_KEY


def test_gpus(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the first GPU that no judge has; too few are an error."""
    monkeypatch.setattr(machine, "gpus", lambda: [Gpu(str(number), 80 * GIB) for number in range(3)])
    made = described(run, JUDGE_TENSOR_PARALLEL_SIZE=2)
    given = {program.name: program.environment.get("CUDA_VISIBLE_DEVICES") for program in made.programs}
    assert (given["judge"], given["reward-model"]) == ("0,1", "2")
    with pytest.raises(StackError, match="no GPU is left for the reward model"):
        described(run, JUDGE_REPLICAS=3)


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is named is started before others take the memory, with a warning where it does not suffice."""
    monkeypatch.setattr(machine, "free_memory", lambda: 3 * GIB)
    settings = load(REWARD_MODEL_ID="org/rm")
    choice = model_servers.choose(settings, (), named_judges.servers(settings, "org/judge"), lambda *_: "")
    assert choice.chosen == [REWARD_MODEL]
    assert {*choice.left_out} == {JUDGE.name, EMBEDDING.name}
    assert choice.warnings == ["REWARD_MODEL_ID=org/rm: reward-model needs 4.0 GiB of memory and 3.0 are free"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({URL: "http://other.example:8001"}, f"REWARD_MODEL_ID starts a server here, and {URL} names an external one"),
        (
            {"REWARD_MODEL_SERVER_API_KEY": "another", "LLM_JUDGE_SERVER_API_KEY": PORT_KEY},
            "REWARD_MODEL_SERVER_API_KEY: its value differs from LLM_JUDGE_SERVER_API_KEY, the key of the judge's port",
        ),
    ],
)
def test_contradictions(values: dict[str, str], says: str) -> None:
    """Settings that name another reward model, or another key for it, are errors."""
    with pytest.raises(StackError, match=says):
        preflight.require_consistent(load(REWARD_MODEL_ID="org/rm", **values))
