"""`examples/align_anything`: what the folder shows runs as it says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

from rewardstack.remote_rm_client import RemoteRewardModel

from .conftest import ROOT, SOURCES, RewardServer
from .scripted_server import Answer, scripted_server

FOLDER = ROOT / "examples" / "align_anything"


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
