"""verl's own loader and reward loop, its workers in Ray, on the rewards of the live reward server and judge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import ray
from transformers import PreTrainedTokenizerFast
from verl.trainer.ppo.reward import load_reward_manager

from benchmarks.verl_batches import Sample, batch, configuration, reward_loop, tokenizer
from rewardstack import compute_score_batched
from rewardstack.trainers import verl as drop_in
from tests.support.servers import free_port
from tests.trainers.conftest import Report

PACKAGE = "pkg://rewardstack.trainers.verl"
FILE = drop_in.__file__
FUNCTION = "reward.custom_reward_function"
MANAGERS = {
    "naive": (),
    "dapo": (),
    "gdpo": (),
    "rate_limited": ("+reward.max_concurrent=8",),
    "remote": (f"{FUNCTION}.name=compute_score_sync",),
}
"""verl's managers, and what each needs beside its name."""
KEYS = {"score", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"}
OWN_NAMES = [
    Sample("So it is\n#### 42", "42", "openai/gsm8k"),
    Sample("It is \\boxed{\\frac12}.", "\\frac{1}{2}", "DigitalLearningGmbH/MATH-lighteval"),
    Sample("Answer: 42", "42", "math_dapo"),
    Sample("It is \\boxed{42}.", "42", "aime_2024"),
    Sample("It is \\boxed{42}.", "42", "numina_olympiads"),
    Sample("#### 41", "42", "openai/gsm8k"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path of the policy's tokenizer."""
    return tokenizer(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray, with more processors than there are, for nobody here computes much."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(num_cpus=32, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


class Broken(BaseHTTPRequestHandler):
    """A server that answers 500 to whatever it is asked."""

    def answer(self) -> None:
        self.send_error(500)

    do_GET = do_POST = answer

    def log_message(self, *_: Any) -> None:
        """Nothing is said of it."""


@pytest.fixture(scope="module")
def broken() -> Iterator[str]:
    """The address of a reward server that is broken; in this process, for verl brings a `tests` of its own, which those
    of `tests.support` would import from."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def samples_of_all_kinds(broken: str) -> list[Sample]:
    """Right and wrong ones of verl's own data sets, judged ones, and those that get no score for every reason."""
    dead = {"server_url": f"http://127.0.0.1:{free_port()}", "timeout": 2}
    lost = [
        Sample("#### 1", None),
        Sample("#### 1", "1", extra=dead),
        Sample("#### 1", "1", extra={"server_url": broken, "timeout": 2}),
        Sample("It is 42.", "42", "llm_judge_remote", dead),
    ]
    return [*OWN_NAMES, Sample("It is 42.", "42", "llm_judge_remote", {"question": "What is 6 * 7?"}), *lost]


def expected(samples: list[Sample]) -> list[dict[str, Any]]:
    """What `compute_score_batched` says of them."""
    sources, texts = [one.source for one in samples], [one.solution for one in samples]
    truths, extras = [one.truth for one in samples], [one.extra for one in samples]
    return compute_score_batched(sources, texts, truths, extras, details=True)


@pytest.mark.parametrize("manager", MANAGERS)
def test_managers(manager: str, model: str, cluster: None, broken: str, report: Report) -> None:
    """A batch scored by each manager's loop has the rewards of `compute_score_batched`, and the same keys throughout:
    a sample that got no score is 0, `unscored` or `failed`."""
    samples = samples_of_all_kinds(broken)
    function = [f"{FUNCTION}.path={PACKAGE}", f"reward.reward_manager.name={manager}", "reward.num_workers=2"]
    with reward_loop(configuration(model, *function, *MANAGERS[manager])) as loop:
        out = loop.compute_rm_score(batch(samples, model))
    rewards = out.batch["rm_scores"].sum(-1).tolist()
    scores = expected(samples)
    assert rewards == pytest.approx([one["score"] for one in scores])
    assert {*out.meta_info["reward_extra_keys"]} == KEYS
    assert all(out.non_tensor_batch[key].dtype.kind == "f" for key in KEYS)
    for key in ("ok", "unscored", "failed"):
        assert out.non_tensor_batch[key].tolist() == [one[key] for one in scores], key
    assert rewards[:7] == [1, 1, 1, 1, 1, 0, 0.5]
    assert out.non_tensor_batch["unscored"][7] == 1
    assert out.non_tensor_batch["failed"][8:].tolist() == [1, 1, 1]
    report(len(samples), manager)


def run_single(config: Any, model: str, sample: Sample) -> dict[str, Any]:
    """A sample through a manager that verl has loaded into this process."""
    manager = load_reward_manager(config, PreTrainedTokenizerFast.from_pretrained(model))
    return manager.loop.run_until_complete(manager.run_single(batch([sample], model)))
