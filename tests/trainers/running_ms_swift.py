"""ms-swift's GRPO, with the rewards of its plugin, on a live reward server and judge; its policy is a tiny one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from swift.rewards import orms
from swift.rl_core.data import GRPOSample
from swift.rl_core.grpo_algorithm import compute_rewards_per_func
from swift.utils import import_external_file

from rewardstack.errors import ScoringError
from rewardstack.trainers.ms_swift import register
from tests.support.servers import fault_server, free_port
from tests.support.snippets import ROOT, block
from tests.trainers.conftest import Report

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
STEPS = 2
TINY = {"--model_type": "llama", "--template": "dummy"}
ON_A_PROCESSOR = {"--torch_dtype": "float32", "--bf16": "false", "--use_cpu": "true"}
SHORT = {"--max_steps": str(STEPS), "--max_completion_length": "8"}


def samples(*solutions: str | None) -> list[GRPOSample]:
    """Rows as ms-swift's trainer has them, whose responses are 0, 1, ..."""
    rows = []
    for number, solution in enumerate(solutions):
        said = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": f"#### {number}"}]
        rows.append({"messages": said, "solution": solution, "data_source": "gsm8k"})
    return [GRPOSample.from_row(row) for row in rows]


def scored(names: Sequence[str], rows: list[GRPOSample]) -> list[list[float]]:
    """What ms-swift makes of rewards."""
    funcs: list[Any] = [orms[name](args=None) for name in names]
    rewards = compute_rewards_per_func(rows, funcs, [None] * len(funcs), torch.device("cpu"))
    values: list[list[float]] = rewards.tolist()
    return values


def test_the_page(tmp_path: Path, report: Report) -> None:
    """What the page says to put into a plugin gives a reward to each row, of rules and of the judge."""
    plugin = tmp_path / "plugin.py"
    plugin.write_text(block("docs/trainers.md", "python", "from rewardstack.trainers.ms_swift"))
    import_external_file(str(plugin))
    register("by_row")

    rows = scored(["gsm8k", "judge", "by_row"], samples("0", "2"))
    assert [[1.0, 1.0], [0.0, 0.0]] == [[rule, by_row] for rule, _, by_row in rows]
    assert all(0 <= judged <= 1 for _, judged, _ in rows)
    report(6, "its own computation of rewards, of rules and judge")


@pytest.mark.parametrize(("fault", "cause"), [("dead", "connection refused"), ("503", "503")])
def test_a_row_without_a_value(fault: str, cause: str, report: Report) -> None:
    """A reference that is missing and a server that fails are errors with their cause, not zeros."""
    with fault_server() as server:
        server.set(mode="503")
        url = server.url if fault == "503" else f"http://127.0.0.1:{free_port()}"
        register("down", "gsm8k", extra_info={"server_url": url}, timeout=5)
        with pytest.raises(ScoringError, match=f"^reward down: sample 0: failed: .*{cause}"):
            scored(["down"], samples("0", "1"))

    register("gsm8k", "gsm8k")
    with pytest.raises(ScoringError, match=r"^reward gsm8k: sample 1: unscored: the reference .*missing"):
        scored(["gsm8k"], samples("0", None))
    report(4, f"{fault} server: an error")


def test_without_a_gpu(report: Report, needs_process: None) -> None:
    """What the example's page says to run says what it needs, and what it would run."""
    commands = block("examples/ms_swift/README.md", "bash", "examples/ms_swift/train.sh")
    variables = {**os.environ, "PATH": PATH, "CUDA_VISIBLE_DEVICES": ""}

    done = subprocess.run(["sh", "-c", commands], cwd=ROOT, capture_output=True, text=True, env=variables, check=False)

    assert 1 == done.returncode
    assert 2 == done.stdout.count("Nothing was trained.\nIt needs GPUs: 1 (nvidia-smi finds none).\n")
    assert 2 == done.stdout.count("It would run:\n  swift rlhf \\\n    --rlhf_type grpo")
    assert "--reward_funcs gsm8k brevity judge" in done.stdout and done.stdout.endswith("--max_steps 100\n")
    report(0, "without a GPU it shows the configuration")


def test_training(tmp_path: Path, report: Report, needs_process: None) -> None:
    """The example's script trains, and its log has each reward by name."""
    policy = tmp_path / "policy"
    subprocess.run([sys.executable, str(ROOT / "examples/trl/tiny_policy.py"), str(policy)], check=True)
    options = {**TINY, **ON_A_PROCESSOR, **SHORT, "--output_dir": str(tmp_path / "out")}
    variables = {"PATH": PATH, "MODEL": str(policy), "REWARDS": "gsm8k brevity judge"}
    variables |= {"CPU": "1", "HF_HUB_OFFLINE": "1"}

    script = [str(ROOT / "examples/ms_swift/train.sh"), *(word for pair in options.items() for word in pair)]
    done = subprocess.run(script, env={**os.environ, **variables}, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, (done.stdout + done.stderr)[-3000:]
    [log] = (tmp_path / "out").glob("*/logging.jsonl")
    steps = [line for line in map(json.loads, log.read_text().splitlines()) if "reward" in line]
    assert STEPS == len(steps)
    assert all(0 <= line["rewards/judge/mean"] <= 1 for line in steps)
    assert all({"rewards/gsm8k/mean", "rewards/brevity/mean"} <= line.keys() for line in steps)
    report(STEPS * 16 * 3, "GRPO by the example")
