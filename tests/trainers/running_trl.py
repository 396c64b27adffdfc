"""TRL's GRPO on the rewards of a live reward server and judge; its policy is a tiny one of random weights."""

from __future__ import annotations

import importlib
import math
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rewardstack import register_judge, register_reward_model, register_route
from rewardstack.errors import RequestError
from rewardstack.trainers.trl import reward_func
from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.servers import FaultServer, fault_server, free_port
from tests.support.snippets import ROOT, block
from tests.trainers.conftest import Report

EXAMPLE = ROOT / "examples/trl"
sys.path.append(str(EXAMPLE))

rises: Any = importlib.import_module("rises")
tiny_policy: Any = importlib.import_module("tiny_policy")

Train = Callable[..., list[dict[str, float]]]
STEPS = 2
BATCH = 4
ROWS = [
    {"prompt": [{"role": "user", "content": f"What is {n}+{n}?"}], "answer": None if n == 3 else str(2 * n), "most": 9}
    for n in range(4)
]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Runs GRPO on some rewards; gives the log of its steps."""

    def run(funcs: Sequence[Any], rows: Sequence[dict[str, Any]] = ROWS, **options: Any) -> list[dict[str, float]]:
        tiny_policy.write(str(tmp_path))
        configuration = GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            num_generations=2,
            max_completion_length=8,
            logging_steps=1,
            use_cpu=True,
            bf16=False,
            save_strategy="no",
            report_to=[],
            **options,
        )
        data = Dataset.from_list([*rows])
        trainer = GRPOTrainer(model=str(tmp_path), reward_funcs=[*funcs], train_dataset=data, args=configuration)
        trainer.train()
        return [line for line in trainer.state.log_history if "reward" in line]

    return run


@pytest.fixture
def faulty() -> Iterator[FaultServer]:
    """A reward server that refuses for now, whatever it is asked."""
    with fault_server() as server:
        server.set(mode="503")
        yield server


def absent(value: float | None) -> bool:
    """Whether a figure is NaN, for which TRL's history of the log has None."""
    return value is None or math.isnan(value)


def test_the_page(train: Train, report: Report, tmp_path: Path) -> None:
    """What the page says gives rewards of rules and of the judge; None is left out, and the log has the counts."""
    code = tmp_path / "page.py"
    code.write_text(block("docs/trainers.md", "python", "from rewardstack.trainers.trl"))

    log = train(runpy.run_path(str(code))["reward_funcs"])

    assert STEPS == len(log)
    for line in log:
        assert 0 <= line["rewards/judge/mean"] <= 1
        assert BATCH == line["rewards/judge/ok"] + line["rewards/judge/unscored"] == line["rewards/brevity/ok"]
        assert BATCH == line["rewards/gsm8k/ok"] + line["rewards/gsm8k/unscored"]
    assert 0 < sum(line["rewards/gsm8k/unscored"] for line in log) < STEPS * BATCH
    report(STEPS * BATCH * 3, "GRPO on rules and judge, None left out, counts in its log")


def test_rule_judge_and_reward_model(train: Train, report: Report) -> None:
    """A sum of a rule, the judge and a shaped reward model is the reward of GRPO steps, within its bounds."""
    register_reward_model("shaped", {"scale": 0.1, "clip": [-1, 1]})
    parts = ["gsm8k", {"route": "llm_judge_remote", "weight": 0.5}, {"route": "shaped", "weight": 0.25}]
    register_route("blend", {"sum": parts})

    log = train([reward_func("blend", on_error="raise")], [row for row in ROWS if row["answer"]])

    assert [line["rewards/blend/ok"] for line in log] == [BATCH] * STEPS
    assert all(-0.25 <= line["rewards/blend/mean"] <= 1.75 for line in log)
    assert all(line["rewards/blend/mean"] != 0 for line in log)
    report(STEPS * BATCH, "GRPO on a sum of rule, judge and reward model")


def test_groups(train: Train, report: Report) -> None:
    """GRPO trains on a judge that compares the completions of a prompt; a batch that divides them ends the training."""
    judge = FaultServer(script=FAKE_JUDGE)
    judge.set(compares=True)
    table = {"base_url": judge.url, "compare": "listwise"}
    register_judge("ruler", {**table, "group_size": 2})
    register_judge("more", {**table, "group_size": 8})

    log = train([reward_func("ruler", reference=None, on_error="raise")])

    assert [line["rewards/ruler/ok"] for line in log] == [BATCH] * STEPS
    assert all(0 <= line["rewards/ruler/mean"] <= 1 for line in log)
    assert judge.stats()["requests"] > 0
    with pytest.raises(RequestError, match="not a multiple of 8; set group_size to num_generations"):
        train([reward_func("more", reference=None)])
    judge.kill()
    report(STEPS * BATCH, "GRPO on a judge that compares groups")


def test_columns(train: Train, report: Report) -> None:
    """The route may stand in a column, options in others; a plain function does as one that is awaited."""
    funcs = [reward_func(blocking=one, name=f"blocking {one}", columns=["most"]) for one in (False, True)]

    for line in train(funcs, [{**row, "data_source": "gsm8k", "extra_info": {"method": "flexible"}} for row in ROWS]):
        assert line["rewards/blocking False/mean"] == line["rewards/blocking True/mean"]
        assert line["rewards/blocking False/ok"] == line["rewards/blocking True/ok"] > 0
    with pytest.raises(RequestError, match=r"^reference: there is no column 'solution'.*remove_unused_columns"):
        train([reward_func("gsm8k", reference="solution")])
    report(STEPS * BATCH * 2, "routes by row; a missing column named")


@pytest.mark.parametrize("fault", ["dead", "503"])
def test_a_server_that_fails(
    fault: str, train: Train, report: Report, caplog: pytest.LogCaptureFixture, faulty: FaultServer
) -> None:
    """Its reward is NaN, not 0, the log counts the failures and says why; other rewards go on, and alone none moves."""
    url = faulty.url if fault == "503" else f"http://127.0.0.1:{free_port()}"
    down = reward_func("gsm8k", extra_info={"server_url": url}, timeout=5, name="down")
    up = reward_func("rule_remote_length", reference=None, extra_info={"max_length": 9}, name="up")
    rows = [row for row in ROWS if row["answer"]]

    both, alone = train([down, up], rows), train([down], rows)

    for line in [*both, *alone]:
        assert absent(line["rewards/down/mean"])
        assert (BATCH, 0) == (line["rewards/down/failed"], line["rewards/down/ok"])
    assert all(BATCH == line["rewards/up/ok"] and 1.0 == line["reward"] for line in both)
    assert all(absent(line["reward"]) and 0.0 == line["grad_norm"] for line in alone)
    assert f"{BATCH} of {BATCH} samples failed; first error: " in caplog.text
    assert ("503" if fault == "503" else "connection refused") in caplog.text
    report(STEPS * BATCH * 3, f"{fault} server: NaN, counted as failed")


def test_rewards_drive_training(report: Report) -> None:
    """The mean reward rises, and does not where the rewards of a batch are shuffled."""
    steps = 40
    first, last = rises.quarters(rises.mean_rewards(steps, 0, shuffled=False))
    start, end = rises.quarters(rises.mean_rewards(steps, 0, shuffled=True))

    assert last - first > 0.2
    assert end - start < 0.1
    report(2 * steps * 64, f"mean reward {first:.2f} to {last:.2f}, shuffled {start:.2f} to {end:.2f}")


def test_the_example(report: Report, needs_process: None) -> None:
    """What the example's page says trains, and prints each reward's counts."""
    commands = block("examples/trl/README.md", "bash", "python examples/trl/train.py\n")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    said = subprocess.check_output(["sh", "-ec", commands], cwd=ROOT, text=True, env={**os.environ, "PATH": path})

    assert 15 == said.count("'rewards/brevity/ok': '16'")
    assert 5 == said.count("'rewards/llm_judge_remote/ok': '16'") == said.count("'rewards/rubric/ok': '16'")
    report(640, "the example as printed")


def test_rubrics_by_row(train: Train, report: Report) -> None:
    """A data set's column of rubrics trains steps; each sample is scored."""
    rubrics = [{"criterion": "Says a number", "points": 2}, {"criterion": "Is rude", "points": -2}]
    rows = [{**row, "rubrics": rubrics} for row in ROWS]
    criteria = reward_func(
        "llm_judge_remote", reference=None, columns=["rubrics"], extra_info={"verdict": "rubric"}, name="rubric"
    )

    log = train([criteria], rows)

    assert STEPS == len(log)
    assert all(BATCH == line["rewards/rubric/ok"] and 0 <= line["rewards/rubric/mean"] <= 1 for line in log)
    report(STEPS * BATCH, "GRPO on a rubric by row")


def test_programs(report: Report, needs_process: None) -> None:
    """Ten steps on one-line programs: each completion is run, and none fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    said = subprocess.check_output(
        ["python", "examples/trl/programs.py"], cwd=ROOT, text=True, env={**os.environ, "PATH": path}
    )

    assert 10 == said.count("'rewards/code/ok': '16'")
    report(160, "ten steps on programs, score share")
