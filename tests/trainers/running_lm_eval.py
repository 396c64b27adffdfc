"""lm-eval-harness evaluates the example's task, by its own command and by a model that says what it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from services.stack.rundir import ROOT
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report

TASK = "gsm8k_rewarded"
REPLIES = {"tram": "38 - 3 = 35\n#### 35", "eggs": "#### 13", "9 times 8": "#### 72"}


class Told(LM):
    """A model that says what `REPLIES` has for what is asked."""

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """The replies."""
        return [next(reply for word, reply in REPLIES.items() if word in one.args[0]) for one in requests]

    def loglikelihood(self, requests: list[Any]) -> Any:
        """Not asked for."""
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets are files, whose cache is the test's; paths in the task are from the root of the tree."""
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(ROOT)


def evaluated() -> dict[str, Any]:
    """The results of the example's task, and its samples."""
    found = simple_evaluate(Told(), tasks=[TASK], task_manager=TaskManager(include_path="examples/lm_eval"))
    assert found
    return {"results": found["results"][TASK], "samples": found["samples"][TASK]}


def test_metric(report: Report) -> None:
    """The metric is the mean reward, and each sample has its own."""
    found = evaluated()

    assert [one["reward"] for one in found["samples"]] == [1.0, 0.0, 1.0]
    assert found["results"]["reward,none"] == pytest.approx(2 / 3)
    assert found["results"]["failed,none"] == 0.0
    report(3, "process_results")


def test_outage(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """Without the server there is no reward, and `failed` is 1."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "1")  # expires
    found = evaluated()

    assert found["results"]["failed,none"] == 1.0
    assert not isinstance(found["results"].get("reward,none"), float)
    report(3, "failed = 1 in an outage, and no reward")


def test_command(needs_process: None, tmp_path: Path, report: Report) -> None:
    """The page's command runs, and what it logs is scored by the judge as the page says."""
    there = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = block("docs/harnesses.md", "bash", "lm_eval").replace("hf --model_args pretrained=MODEL", "dummy")
    subprocess.run(["bash", "-ec", command.replace("OUT", str(tmp_path / "out"))], env=there, check=True)
    assert set(block("examples/lm_eval/README.md", "bash", "lm_eval").split()) < set(command.split())
    [samples] = (tmp_path / "out").rglob("samples_*.jsonl")
    script = block("docs/harnesses.md", "python", "import json").replace("SAMPLES.jsonl", str(samples))
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    scored = [sys.executable, "-m", "rewardstack_cli", "score", "to_score.jsonl", "-o", "scored.jsonl"]
    subprocess.run(scored, cwd=tmp_path, check=True)

    rows = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["ok"] * 3
    report(6, "its command, and what it logged by the judge")
