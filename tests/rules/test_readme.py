"""The README's examples, run as they are printed, against a real reward server."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.conftest import ROOT, RewardServer, clean_environment
from tests.support.snippets import block

pytestmark = pytest.mark.usefixtures("needs_process")

TEXT = (ROOT / "README.md").read_text()


def test_python(server: RewardServer) -> None:
    """The Python example prints what its comments say, without a server and with one."""
    code = block("README.md", "python", "from rewardstack")
    for variables in ({}, {"REWARD_SERVER_URL": server.url}):
        environment = clean_environment(**variables)
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert re.findall(r"print\(.*\)  # (.*)", code) == done.stdout.splitlines()


def test_curl(needs_curl: None, server: RewardServer) -> None:
    """The HTTP example answers with the reward for a right answer in the right format."""
    command = block("README.md", "bash", "curl").replace("http://localhost:6000", server.url)
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert {"rewards": [1.5], "statuses": ["ok"]} == json.loads(done.stdout)


def test_own_function_and_sum(tmp_path: Path) -> None:
    """The function scores under the name that the page gives it, and the route has it beside the judge."""
    for language in ("python my_rewards.py", "toml routes.toml"):
        (tmp_path / language.split()[1]).write_text(block("README.md", language, ""))
    code = "from rewardstack import compute_score; print(compute_score('rule_remote_brevity', 'word ' * 100))"
    environment = clean_environment(
        REWARD_FUNCTIONS="my_rewards.py", REWARDSTACK_ROUTES="routes.toml", OPENAI_API_KEY="a key"
    )
    rewardstack = str(Path(sys.executable).parent / "rewardstack")
    for command, printed in (
        ([sys.executable, "-c", code], "^0.5$"),
        ([rewardstack, "routes", "chat"], "helpful, rule_remote_brevity"),
    ):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert re.search(printed, done.stdout), done.stdout


def test_command_line(server: RewardServer, tmp_path: Path) -> None:
    """The commands find the service well and score the shipped samples."""
    commands = block("README.md", "bash", ".venv/bin/rewardstack check").replace(".venv/bin/rewardstack", "rewardstack")
    commands = commands.replace("scored.jsonl", str(tmp_path / "scored.jsonl"))
    folder = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = clean_environment(REWARD_SERVER_URL=server.url, PATH=folder)
    subprocess.run(["bash", "-ec", commands], cwd=ROOT, env=environment, capture_output=True, check=True)
    rows = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert {"ok"} == {row["status"] for row in rows}


def test_file_of_trainer(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that verl is told of scores by the name of the data set, as verl calls it."""
    [module] = re.findall(r"^    path: pkg://(\S+)", block("README.md", "yaml", "reward:"), re.MULTILINE)
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    sample = {"data_source": "openai/gsm8k", "solution_str": "#### 42", "ground_truth": "42", "extra_info": {}}
    assert 1.0 == asyncio.run(importlib.import_module(module).compute_score(**sample))["score"]


def test_links() -> None:
    """Every file that the README points to is there."""
    assert [] == [path for path in re.findall(r"\]\(([^)#:]+)\)", TEXT) if not (ROOT / path).exists()]
