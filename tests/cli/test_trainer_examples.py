"""`examples/openrlhf`, `slime`, `areal` and `roll`: what they do on a machine without GPU and trainer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.snippets import block

from .conftest import ROOT, SOURCES, RewardServer

pytestmark = pytest.mark.usefixtures("needs_process")

EXAMPLES = ROOT / "examples"
PAGE = "docs/trainers.md"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has no GPU."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": path, "PYTHONPATH": SOURCES}


def run(machine: dict[str, str], *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {**machine, **variables}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False)


def test_openrlhf(machine: dict[str, str]) -> None:
    """The training says what it needs and shows its command, with rewards by HTTP or by the client's file."""
    urls = "http://one:6000/get_reward,http://two:6000/get_reward"
    done = run(machine, "bash", EXAMPLES / "openrlhf/train.sh", REWARD_URL=urls)
    assert (done.returncode, done.stderr) == (1, "")
    assert "It needs GPUs: 1" in done.stdout and "It needs OpenRLHF" in done.stdout
    [option, _] = block(PAGE, "", "--reward.remote_url").splitlines()
    assert option in done.stdout.replace("\\", "")
    done = run(machine, "bash", EXAMPLES / "openrlhf/train.sh", REWARD="file", REWARD_TYPE="llm_judge_remote")
    assert "Its rewards: llm_judge_remote, by /" in done.stdout
    assert f"--reward.remote_url {ROOT}/client/rewardstack/trainers/openrlhf.py" in done.stdout


def test_slime(machine: dict[str, str]) -> None:
    """The options are those of the page, each way; another way is refused."""
    said = [run(machine, "bash", EXAMPLES / "slime/rewards.sh", REWARD=way) for way in ("http", "function", "group")]
    assert "".join(done.stdout for done in said) == block(PAGE, "", "--rm-type")
    done = run(machine, "bash", EXAMPLES / "slime/rewards.sh", REWARD="htpt")
    assert (done.returncode, done.stderr) == (1, "REWARD: http, function or group, not htpt\n")


def test_slime_group(machine: dict[str, str], reward_server: RewardServer) -> None:
    """A group is scored, as the example's page shows it."""
    page = "examples/slime/README.md"
    commands = block(page, "bash", "export").replace("http://localhost:6000", reward_server.url)
    done = run(machine, "bash", "-euc", commands)
    assert (done.stdout, done.stderr) == (block(page, "", "1.0"), "")


def test_areal(machine: dict[str, str]) -> None:
    """The training says what it needs, and with what it would train."""
    done = run(machine, sys.executable, EXAMPLES / "areal/train.py")
    assert done.returncode == 1
    assert "AReaL" in done.stdout and "reward_fn=rewardstack.trainers.areal.reward, REWARD_TYPE=math" in done.stdout


def test_roll() -> None:
    """The page shows the part of the configuration that names the worker, which is a class of the file beside it."""
    shown = block(PAGE, "yaml", "rewards:")
    assert shown in (EXAMPLES / "roll/rewards.yaml").read_text()
    module, _, name = shown.split()[-1].partition(".")
    assert f"\nclass {name}(" in (EXAMPLES / f"roll/{module}.py").read_text()


def test_align_anything(machine: dict[str, str]) -> None:
    """The options of the page are those of the training script, with their defaults."""
    url, *others = block(PAGE, "", "--remote_rm_url").splitlines()
    done = run(machine, "bash", ROOT / "scripts/llama_ppo_remote_rm.sh")
    assert all(f"    {option}" in done.stdout for option in (url.replace("localhost", "127.0.0.1"), *others))
