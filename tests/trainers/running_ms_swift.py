"""ms-swift's GRPO, with the rewards of its plugin, on a live reward server and judge; its policy is a tiny one."""

from __future__ import annotations

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

from rewardstack.errors import ScoringError
from rewardstack.trainers.ms_swift import register
from tests.support.servers import FaultServer, fault_server, free_port
from tests.support.snippets import ROOT, block
from tests.trainers.conftest import Report

STEPS = 2
TINY = [
    "--model_type",
    "llama",
    "--template",
    "dummy",
    "--torch_dtype",
    "float32",
    "--bf16",
    "false",
    "--use_cpu",
    "true",
]


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
    rewards: list[list[float]] = compute_rewards_per_func(
        rows, funcs, [None] * len(funcs), torch.device("cpu")
    ).tolist()
    return rewards


def test_the_page(report: Report) -> None:
    """What the page says to put into a plugin gives a reward to each row, of rules and of the judge."""
    exec(block("docs/trainers.md", "python", "from rewardstack.trainers.ms_swift"))
    register("by_row")

    assert [[1.0, 0.5, 1.0], [0.0, 0.5, 0.0]] == scored(["gsm8k", "judge", "by_row"], samples("0", "2"))
    report(6, "its own computation of rewards, of rules and judge")


@pytest.mark.parametrize("fault", ["dead", "503"])
def test_a_row_without_a_value(fault: str, report: Report) -> None:
    """A reference that is missing and a server that fails are errors with their cause, not zeros."""
    with fault_server() as server:
        server.set(mode="503")
        url = server.url if fault == "503" else f"http://127.0.0.1:{free_port()}"
        register("down", "gsm8k", extra_info={"server_url": url}, timeout=2)

        with pytest.raises(
            ScoringError, match=rf"^reward down: sample 0: failed: .*{'503' if fault == '503' else 'refused'}"
        ):
            scored(["down"], samples("0", "1"))
        register("gsm8k", "gsm8k")
        with pytest.raises(ScoringError, match=r"^reward gsm8k: sample 1: unscored: the reference .*missing"):
            scored(["gsm8k"], samples("0", None))
    report(4, f"{fault} server: an error")


def test_training(tmp_path: Path, report: Report) -> None:
    """The example's script trains, and its log has each reward by name."""
    policy, output = tmp_path / "policy", tmp_path / "output"
    subprocess.run([sys.executable, str(ROOT / "examples/trl/tiny_policy.py"), str(policy)], check=True)
    options = [*TINY, "--max_steps", str(STEPS), "--max_completion_length", "8", "--output_dir", str(output)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {
        "PATH": path,
        "MODEL": str(policy),
        "REWARDS": "gsm8k brevity judge",
        "CPU": "1",
        "HF_HUB_OFFLINE": "1",
    }

    script = [str(ROOT / "examples/ms_swift/train.sh"), *options]
    done = subprocess.run(script, env={**os.environ, **variables}, capture_output=True, text=True, check=False)

    said = done.stdout + done.stderr
    assert 0 == done.returncode, said[-3000:]
    assert STEPS <= said.count("'rewards/judge/mean': '0.5'")
    report(STEPS * 16 * 3, "GRPO by the example")
