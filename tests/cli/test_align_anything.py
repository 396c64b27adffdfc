"""`examples/align_anything`: what the folder shows runs as it says."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rewardstack.errors import ServiceError
from rewardstack.remote_rm_client import RemoteRewardModel
from tests.support.servers import free_port

from .conftest import ROOT, SOURCES, RewardServer
from .scripted_server import Answer, scripted_server

FOLDER = ROOT / "examples" / "align_anything"
SCRIPT = ROOT / "scripts" / "llama_ppo_remote_rm.sh"
DEEPSPEED = """#!{python}
import json, sys
from rewardstack.remote_rm_client import RemoteRewardModel
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
url, timeout, tries = (given["--remote_rm_" + name] for name in ("url", "timeout", "retry_times"))
prompts = [row["question"] for row in json.load(open(given["--train_datasets"]))]
responses = ["<think>.</think><answer>$42$</answer>"] * len(prompts)
print(url)
print(RemoteRewardModel(url, timeout=int(timeout), retry_times=int(tries)).score(prompts, responses))
"""


def test_the_real_server_answers_the_client(reward_server: RewardServer) -> None:
    """`math_verifier` and, by the URL, another reward function score a batch over Align-Anything's protocol."""
    endpoint = f"{reward_server.url}/get_reward"
    model = RemoteRewardModel(endpoint)
    responses = ["<think>.</think><answer>$42$</answer>", "42"]
    assert model.score(["6 * 7"] * 2, responses, ["42"] * 2) == [1.5, 0.0]
    assert model.statuses == ["ok", "ok"]
    assert RemoteRewardModel(f"{endpoint}?reward_type=exact_match").score(["p"], ["42"], ["42"]) == [1.0]


def test_the_example_prints_what_its_readme_shows(reward_server: RewardServer) -> None:
    """The script's output stands word for word in the README."""
    done = subprocess.run(
        (sys.executable, FOLDER / "score_batch.py", f"{reward_server.url}/get_reward"),
        env={"PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"```\n{done.stdout}```\n" in (FOLDER / "README.md").read_text()


def test_the_trainers_client_returns_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drop-in file hands the rewards to `torch.tensor`; torch itself is stood in for."""
    torch = ModuleType("torch")
    torch.tensor = lambda values: ("tensor", values)  # type: ignore[attr-defined]
    torch.Tensor = tuple  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    spec = importlib.util.spec_from_file_location("drop_in", FOLDER / "remote_rm_client.py")
    assert spec is not None and spec.loader is not None
    drop_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drop_in)
    with scripted_server(Answer({"rewards": [1.5, 0.0]})) as server:
        model = drop_in.RemoteRewardModel(f"{server.url}/get_reward", timeout=5, retry_times=2)
        assert model.score(["p", "q"], ["a", "b"]) == ("tensor", [1.5, 0.0])


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with fake programs: one reports a GPU, one trains by asking for rewards."""
    programs = {"nvidia-smi": "#!/bin/sh\n", "deepspeed": DEEPSPEED.format(python=sys.executable)}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "align_anything.py").touch()
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = os.pathsep.join([SOURCES, str(tmp_path)])
    small = {"REWARD_WORKERS": "1", "VERIFY_PROCESSES": "1"}
    return {"PATH": path, "PYTHONPATH": sources, "OUTPUT_DIR": str(tmp_path / "out"), **small}


def train(environment: dict[str, str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command, given = ("bash", str(SCRIPT)), {**environment, **variables}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=120, check=False)


def test_training_without_a_gpu(needs_process: None, machine: dict[str, str], tmp_path: Path) -> None:
    """Where something is missing the script says what, shows the training that it would run, and fails."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    done = train(machine, tmp_path, REMOTE_RM_URL="http://rewards:6000/get_reward")
    assert (done.returncode, done.stderr) == (1, "")
    assert "It needs GPUs: 8" in done.stdout and "DeepSpeed:" not in done.stdout
    for shown in (
        "--remote_rm_url http://rewards:6000/get_reward",
        "--remote_rm_timeout 100",
        "--remote_rm_retry_times 3",
    ):
        assert shown in done.stdout
    assert not (tmp_path / "out").exists()


def test_training_is_shown(needs_process: None, machine: dict[str, str], tmp_path: Path) -> None:
    """Where nothing is missing the configuration is shown where it is asked for."""
    done = train(machine, tmp_path, SHOW="1", ACTOR_MODEL_NAME_OR_PATH="my model")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"--reward_critic_model_name_or_path my\ model" in done.stdout


def test_training_has_a_server_of_its_own(
    needs_process: None, machine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a URL the training is rewarded by a server that knows its data's answers, and is gone afterwards."""
    done = train(machine, tmp_path, REWARD_PORT=str(free_port()))
    assert done.returncode == 0, done.stdout + done.stderr
    *_, url, rewards = done.stdout.splitlines()
    assert json.loads(rewards) == [1.5] + [0.5] * 11
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "0.3")  # expires
    with pytest.raises(ServiceError, match="connection refused"):
        RemoteRewardModel(url).score(["p"], ["r"])
