"""verl's own loader and reward managers up to 0.7 on the rewards of the live reward server and judge."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast
from verl.trainer.ppo.reward import load_reward_manager

from benchmarks.verl_batches import Sample, batch, configuration, tokenizer
from rewardstack import compute_score_batched
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report

Batch = Callable[..., dict[str, Any]]
FUNCTION = "custom_reward_function"
OVERLONG = "reward_model.reward_kwargs"
MANAGERS = {
    "naive": (),
    "dapo": (f"+{OVERLONG}.overlong_buffer_cfg={{enable: false, len: 1}}", f"+{OVERLONG}.max_resp_len=96"),
    "prime": (f"+{FUNCTION}.reward_kwargs.details=false",),
    "batch": (f"{FUNCTION}.name=compute_score_batched",),
}
"""verl's managers, and what each needs beside the page's lines."""
SAMPLES = [
    Sample("So it is\n#### 42", "42"),
    Sample("#### 41", "42"),
    Sample("It is \\boxed{\\frac12}.", "\\frac{1}{2}", "DigitalLearningGmbH/MATH-lighteval"),
    Sample("It is 42.", "42", "llm_judge_remote", {"question": "What is 6 * 7?", "temperature": 0}),
    Sample("#### 1", None),
    Sample("#### 1", "1", extra={"server_url": f"http://127.0.0.1:{free_port()}", "timeout": 2}),  # expires
]
"""Right, wrong, judged, without a reference, and one whose server is gone."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path of the policy's tokenizer."""
    return tokenizer(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def scored(model: str) -> Batch:
    """Has verl load a manager, by the page's lines and further words of a command line, and score the samples."""

    def score(manager: str, *words: str) -> dict[str, Any]:
        lines = block("docs/trainers.md", "", FUNCTION).split()
        own = [f"reward_model.reward_manager={manager}", *MANAGERS[manager]]
        config = configuration(model, *lines, *own, *words)
        further = config.reward_model.get("reward_kwargs", {})
        loaded = load_reward_manager(config, PreTrainedTokenizerFast.from_pretrained(model), 0, **further)
        told: dict[str, Any] = loaded(batch(SAMPLES, model), return_dict=True)
        return told

    return score


@pytest.mark.parametrize("manager", MANAGERS)
def test_managers(scored: Batch, manager: str, report: Report) -> None:
    """Each manager's batch has the rewards of `compute_score_batched`: what has no score is 0."""
    rewards = scored(manager)["reward_tensor"].sum(-1).tolist()
    columns = zip(*((one.source, one.solution, one.truth, one.extra) for one in SAMPLES), strict=True)
    assert rewards == compute_score_batched(*map(list, columns))
    assert rewards[:3] == [1, 0, 1]
    assert 0 <= rewards[3] <= 1
    report(len(SAMPLES), manager)


@pytest.mark.parametrize("manager", ["naive", "dapo", "batch"])
def test_details(scored: Batch, manager: str, report: Report) -> None:
    """The managers that accept dicts log `acc`, `unscored` and `failed` of each sample."""
    told = scored(manager)["reward_extra_info"]
    assert told["acc"][:3] == [1, 0, 1]
    assert [*told["unscored"]] == [0, 0, 0, 0, 1, 0]
    assert [*told["failed"]] == [0, 0, 0, 0, 0, 1]
    report(len(SAMPLES), f"failed=1 by {manager}")


def test_prime_tells(scored: Batch, capfd: pytest.CaptureFixture[str], report: Report) -> None:
    """`prime` takes floats alone; why a sample is 0 is in the log of the process that scored it."""
    handler = logging.StreamHandler()
    logging.getLogger("rewardstack").addHandler(handler)
    try:
        scored("prime")
    finally:
        logging.getLogger("rewardstack").removeHandler(handler)
    said = capfd.readouterr().err
    assert "1 of 1 samples failed; first error: " in said
    assert "the reference (ground_truth) is missing or empty" in said
    report(len(SAMPLES), "prime's log says why")
