"""TRL's GRPO on the rewards of a live reward server and judge; its policy is a tiny one of random weights."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rewardstack.errors import RequestError
from rewardstack.trainers.trl import reward_func
from tests.support.servers import free_port
from tests.support.snippets import ROOT, block
from tests.trainers.conftest import Report

EXAMPLE = ROOT / "examples/trl"
sys.path.append(str(EXAMPLE))

import rises  # noqa: E402
import tiny_policy  # noqa: E402

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


def test_rewards_of_live_servers(train: Train, report: Report) -> None:
    """Rules and judge score messages, awaited or blocking; counts are in the log, and None is left out."""
    log = train(
        [
            reward_func("gsm8k"),
            reward_func("llm_judge_remote", name="judge"),
            reward_func("rule_remote_length", reference=None, columns=["most"], extra_info={"max_length": 1}),
            reward_func(reference="answer", blocking=True, name="by_row"),
        ],
        [{"data_source": "gsm8k", "max_length": 1, **row} for row in ROWS],
    )

    assert STEPS == len(log)
    for line in log:
        assert 0.5 == line["rewards/judge/mean"]
        assert BATCH == line["rewards/judge/ok"] + line["rewards/judge/unscored"]
        assert BATCH == line["rewards/rule_remote_length/ok"]
        assert line["rewards/gsm8k/unscored"] == line["rewards/by_row/unscored"]
    assert 0 < sum(line["rewards/gsm8k/unscored"] for line in log) < STEPS * BATCH
    report(STEPS * BATCH * 4, "GRPO on rules and judge, None left out, counts in its log")


def test_a_server_that_is_down(train: Train, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server is down a reward is NaN, not 0, and the log counts the failures; other rewards go on."""
    dead = reward_func("gsm8k", extra_info={"server_url": f"http://127.0.0.1:{free_port()}"}, timeout=2, name="dead")

    log = train([dead, reward_func("rule_remote_length", reference=None, extra_info={"max_length": 9}, name="live")])
    alone = train([dead])

    for line in [*log, *alone]:
        assert math.isnan(line["rewards/dead/mean"])
        assert BATCH == line["rewards/dead/failed"] + line["rewards/dead/unscored"]
    assert all(BATCH == line["rewards/live/ok"] and not math.isnan(line["reward"]) for line in log)
    assert all(math.isnan(line["reward"]) and 0.0 == line["grad_norm"] for line in alone)
    report(STEPS * BATCH * 3, "a dead server: NaN, failures counted, no step on it")


def test_a_column_that_is_not_there(train: Train, report: Report) -> None:
    """A column that the data set does not have ends the training, with its name."""
    with pytest.raises(RequestError, match=r"^reference: there is no column 'solution'.*remove_unused_columns"):
        train([reward_func("gsm8k", reference="solution")])
    report(BATCH, "a missing column named")


def test_rewards_drive_training(report: Report) -> None:
    """The mean reward rises, and does not where the rewards are shuffled."""
    steps = 40
    first, last = rises.quarters(rises.mean_rewards(steps, 0, shuffled=False))
    start, end = rises.quarters(rises.mean_rewards(steps, 0, shuffled=True))

    assert last - first > 0.2
    assert end - start < 0.1
    report(2 * steps * 64, f"mean reward {first:.2f} to {last:.2f}, shuffled {start:.2f} to {end:.2f}")


def test_the_example(report: Report, reward_url: str) -> None:
    """What the example's page says to run runs, and its log has the counts."""
