"""verl's own loader and reward loop, its workers in Ray, on the rewards of the live reward server and judge."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import ray
import torch
import transfer_queue
from omegaconf import OmegaConf
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, get_policy_loss_fn
from verl.trainer.ppo.metric_utils import process_validation_metrics
from verl.trainer.ppo.padding_utils import upsample_batch_to_divisible_size
from verl.trainer.ppo.reward import load_reward_manager
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.workers.config import ActorConfig

from benchmarks.judge_load import slow_judge
from benchmarks.verl_batches import Sample, batch, configuration, reward_loop, tokenizer
from rewardstack import compute_score_batched
from rewardstack.errors import RequestError, SettingsError
from rewardstack.trainers import verl as drop_in
from services.stack.rundir import ROOT
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report

One = Callable[..., dict[str, Any]]
PACKAGE = "pkg://rewardstack.trainers.verl"
FUNCTION = "reward.custom_reward_function"
MANAGERS = {
    "naive": (),
    "dapo": (),
    "gdpo": (),
    "rate_limited": ("+reward.max_concurrent=8",),
    "remote": (f"{FUNCTION}.name=compute_score_sync",),
}
"""verl's managers, and what each needs beside its name."""
KEYS = {"score", "acc", "ok", "fallback", "unscored", "failed", "cached", "latency_ms", "label_mass"}
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


@pytest.fixture
def queue(cluster: None) -> Iterator[None]:
    """verl's queue between rollouts and trainer, in Ray."""
    storage = {"num_data_storage_units": 1, "total_storage_size": 100}
    transfer_queue.init(OmegaConf.create({"backend": {"SimpleStorage": storage}}))
    yield
    transfer_queue.close()


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
    dead = {"server_url": f"http://127.0.0.1:{free_port()}", "timeout": 2}  # expires
    lost = [
        Sample("#### 1", None),
        Sample("#### 1", "1", extra=dead),
        Sample("#### 1", "1", extra={"server_url": broken, "timeout": 2}),  # expires
        Sample("It is 42.", "42", "llm_judge_remote", dead),
    ]
    judged = Sample("It is 42.", "42", "llm_judge_remote", {"question": "What is 6 * 7?", "temperature": 0})
    return [*OWN_NAMES, judged, *lost]


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
    assert rewards[:6] == [1, 1, 1, 1, 1, 0]
    assert out.non_tensor_batch["ok"][6] == 1
    assert out.non_tensor_batch["unscored"][7] == 1
    assert out.non_tensor_batch["failed"][8:].tolist() == [1, 1, 1]
    report(len(samples), manager)


class Comparing(BaseHTTPRequestHandler):
    """A judge that gives each of four candidates its last number as a percentage."""

    def log_message(self, *_: Any) -> None:
        """Nothing is said of it."""

    def do_GET(self) -> None:
        self.reply({"data": [{"id": "small", "root": "small", "owned_by": "vllm"}], "version": "0.32.0"})

    def do_POST(self) -> None:
        user = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][1]["content"]
        numbers = re.findall(r"^It is (\d+)\.", user, re.MULTILINE)
        assert len(numbers) == 4
        lines = "\n".join(f"{at}: 0.{number}" for at, number in enumerate(numbers, 1))
        self.reply({"choices": [{"message": {"content": lines}}]})

    def reply(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def one(model: str) -> One:
    """Has verl load a manager into this process by words of a command line, which then scores one sample."""

    def score(sample: Sample, *words: str) -> dict[str, Any]:
        manager = load_reward_manager(configuration(model, *words), PreTrainedTokenizerFast.from_pretrained(model))
        told: dict[str, Any] = manager.loop.run_until_complete(manager.run_single(batch([sample], model)))
        return told

    return score


def test_groups(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """Samples that arrive one by one, in any order, are compared with those of the same `uid`; one worker is needed."""
    judge = ThreadingHTTPServer(("127.0.0.1", 0), Comparing)
    Thread(target=judge.serve_forever, daemon=True).start()
    routes = tmp_path / "routes.json"
    table = {"base_url": f"http://127.0.0.1:{judge.server_port}", "compare": "listwise", "orders": 1, "group_size": 4}
    routes.write_text(json.dumps({"judges": {"ruler": table}}))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
    samples = [Sample(f"It is {at + 10}.", "", "ruler", {"question": "Which?"}) for at in range(8)]
    data = batch(samples, model)
    data.non_tensor_batch["uid"] = np.array(["a", "b"] * 4, dtype=object)
    lines = block("docs/trainers.md", "", "reward.reward_manager")
    policy = PreTrainedTokenizerFast.from_pretrained(model)
    manager = load_reward_manager(configuration(model, *lines.split()), policy)

    async def scored() -> list[float]:
        rows = await asyncio.gather(*(manager.run_single(data[at : at + 1]) for at in range(8)))
        return [row["reward_score"] for row in rows]

    assert manager.loop.run_until_complete(scored()) == pytest.approx([(at + 10) / 100 for at in range(8)])
    with pytest.raises(SettingsError, match="reward.num_workers: is 8"):
        load_reward_manager(configuration(model, *lines.split()[:-1], "reward.num_workers=8"), policy)
    judge.shutdown()
    judge.server_close()
    report(8, "a judge of groups")


class Rollouts(AgentLoopWorkerTQ.__ray_metadata__.modified_class):
    """verl's worker of agent loops in this process, with fixed responses instead of a policy.

    Args:
        config: verl's configuration.
        model: path of the policy's tokenizer.
        workers: the workers of verl's reward loop.
    """

    def __init__(self, config: Any, model: str, workers: list[Any]) -> None:
        self.config, self.reward_loop_worker_handles = config, workers
        self.processor = self.mm_processor_kwargs = None
        self.distillation_enabled = False
        self.encode = PreTrainedTokenizerFast.from_pretrained(model)
        self.buffer = ReplayBuffer("sync", OmegaConf.create({}), None, "drop", OmegaConf.create({}), poll_interval=0.1)

    async def _run_agent_loop(self, *_: Any, trajectory: Any, trace: bool, session_id: int, **prompt: Any) -> None:
        sample = prompt.pop("responses_of_test")[session_id]
        ids = self.encode(sample.solution, add_special_tokens=False)["input_ids"]
        ones = [1] * len(ids)
        output = AgentLoopOutput(
            prompt_ids=[1, 2], response_ids=ids, response_mask=ones, response_logprobs=ones, metrics=AgentLoopMetrics()
        )
        about = {"data_source": sample.source, "reward_model": {"ground_truth": sample.truth}}
        row = {**prompt, **about, "extra_info": dict(sample.extra)}
        await self._agent_loop_postprocess(output, False, session_id=session_id, **row)

    def batch(self, groups: dict[str, list[Sample]]) -> Any:
        """verl's batch for these groups of responses, by `uid`, padded for its workers as verl does it."""
        pending = {"is_prompt": True, "status": "pending", "global_steps": 0}
        transfer_queue.kv_batch_put(keys=[*groups], partition_id="train", tags=[pending] * len(groups))

        async def run() -> None:
            for uid, samples in groups.items():
                prompt = {"uid": uid, "global_steps": 0, "responses_of_test": samples}
                await self._run_prompt(prompt, {}, {"validate": False})

        asyncio.run(run())
        found, _ = self.buffer.sample(global_steps=0, partition_id="train", batch_size=len(groups))
        return upsample_batch_to_divisible_size(found, 8, self.encode.eos_token_id)


def gradients(batch: Any, estimator: str, config: Any) -> tuple[Any, float, Any]:
    """Advantages (of each response's first token), loss and gradients (summed by response), computed by verl."""
    fields = ["uid", "response_mask", "rm_scores", "rollout_log_probs"]
    read = transfer_queue.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=fields)
    data = DataProto(batch=read.to_padded_tensor())
    data.batch["token_level_rewards"] = data.batch["rm_scores"]
    data.non_tensor_batch["uid"] = np.array(data.batch.pop("uid").tolist(), dtype=object)
    kwargs = {"adv_estimator": estimator, "num_repeat": 4, "config": config.algorithm}
    data = compute_advantage_for_multi_trajectories(data, batch_keys=batch.keys, **kwargs)
    old = data.batch["rollout_log_probs"]
    new = old.clone().requires_grad_()
    actor = ActorConfig(strategy="fsdp", rollout_n=4, ppo_micro_batch_size_per_gpu=8)
    advantages, mask = data.batch["advantages"], data.batch["response_mask"]
    loss, _ = get_policy_loss_fn("vanilla")(old, new, advantages, mask, config=actor)
    loss.backward()
    return advantages[:, 0], loss.item(), new.grad.sum(-1)


@pytest.mark.timeout(900)
def test_mask_failed(model: str, queue: None, broken: str, report: Report) -> None:
    """With `reward.mask_failed` verl trains without the failed response: the others have the advantages of a group
    without it, loss and gradients are finite, and 0 for the padding in its place. So it is for a group of which all
    failed; a batch of which all failed ends the run."""
    right, wrong = Sample("#### 1", "1"), Sample("#### 2", "1")
    lost = Sample("#### 1", "1", extra={"server_url": broken, "timeout": 2})  # expires
    lines = block("docs/trainers.md", "", "reward.reward_manager").split()
    config = configuration(model, *lines, "+reward.mask_failed=true", "actor_rollout_ref.rollout.n=4")
    three = torch.tensor([[1.0], [0.0], [1.0]])
    alone, _ = compute_grpo_outcome_advantage(three, torch.ones(3, 1), np.array(["a"] * 3))
    expected = {"grpo": alone[:, 0].tolist(), "rloo": [0.5, -1.0, 0.5], "reinforce_plus_plus": None}
    with reward_loop(config) as loop:
        rollouts = Rollouts(config, model, loop.reward_loop_workers)
        batch = rollouts.batch({"a": [right, wrong, lost, right], "b": [lost] * 4})
        padding = [at for at, key in enumerate(batch.keys) if key.startswith("pad")]
        trained = [batch.keys.index(key) for key in ("a_0_0", "a_1_0", "a_3_0")]
        assert sorted([*padding, *trained]) == [*range(8)]
        for estimator, values in expected.items():
            advantages, loss, gradient = gradients(batch, estimator, config)
            assert np.isfinite([loss, *advantages.tolist(), *gradient.tolist()]).all(), estimator
            assert values is None or advantages[trained].tolist() == pytest.approx(values), estimator
            assert advantages[padding].abs().sum() == gradient[padding].abs().sum() == 0, estimator
            assert gradient[trained[0]] < 0 < gradient[trained[1]], estimator
        with pytest.raises(RuntimeError, match="no materializable trajectories"):
            rollouts.batch({"c": [lost] * 4})
    report(12, "failed samples masked (GRPO, RLOO, REINFORCE++)")


@pytest.mark.parametrize("path", [PACKAGE, drop_in.__file__])
def test_loader(one: One, path: str, report: Report) -> None:
    """verl's loader finds the function by the package's name and by the file's path."""
    assert one(OWN_NAMES[0], f"{FUNCTION}.path={path}")["reward_score"] == 1
    report(1, "loaded by " + path.partition(":")[0].rpartition("/")[2])


def test_the_page(one: One, report: Report) -> None:
    """The lines on the page are all that is needed; a setting of the table holds for every sample."""
    lines = block("docs/trainers.md", "", "reward.custom_reward_function").split()
    assert one(OWN_NAMES[0], *lines)["reward_score"] == 1
    judged = one(OWN_NAMES[0], *lines, f"+{FUNCTION}.reward_kwargs.data_source=llm_judge_remote")
    assert judged["reward_score"] != 1
    assert judged["reward_extra_info"]["ok"] == 1
    partial = one(OWN_NAMES[5], *lines, f"+{FUNCTION}.reward_kwargs.options={{format_score: 0.25}}")
    assert partial["reward_score"] == 0.25
    report(3, "the page's lines")


def test_gdpo_keys(one: One, report: Report) -> None:
    """`parts` makes keys of a reward's parts, from which verl's GDPO takes its components."""
    parts = f"+{FUNCTION}.reward_kwargs.parts=[format,accuracy]"
    wrong = Sample("<think>6 * 7 is 41.</think><answer>$41$</answer>", "42", "rule_remote_math_verifier")
    told = one(wrong, f"{FUNCTION}.path={PACKAGE}", "reward.reward_manager.name=gdpo", parts)["reward_extra_info"]
    assert (told["format"], told["accuracy"], told["score"]) == (0.5, 0, 0.5)
    report(1, "parts for GDPO")


def test_none_is_refused(one: One, model: str, report: Report) -> None:
    """`on_error=none` is refused with the reason: verl's loop cannot make a tensor of None."""
    with pytest.raises(RequestError, match="on_error: none is not supported .*TypeError in assemble_rm_scores"):
        one(OWN_NAMES[0], f"{FUNCTION}.path={PACKAGE}", f"+{FUNCTION}.reward_kwargs.on_error=none")
    with pytest.raises(TypeError):
        RewardManagerBase.assemble_rm_scores(batch(OWN_NAMES[:2], model), [1.0, None])
    report(1, "on_error=none refused")


def test_question(one: One, tmp_path: Path, report: Report) -> None:
    """The judge reads the problem that verl's preprocessing writes into `extra_info.question`."""
    with slow_judge(0.0, tmp_path / "bodies") as (url, _):
        sample = Sample("It is 48.", "48", "llm_judge_remote", {"question": "What is 6 * 8?", "server_url": url})
        assert one(sample, f"{FUNCTION}.path={PACKAGE}")["reward_score"] == 0.5
    assert "What is 6 * 8?" in (tmp_path / "bodies").read_text()
    report(1, "the judge reads the question")


def test_metrics(one: One, broken: str, report: Report) -> None:
    """verl's own metrics of validation have the share that failed, and `acc`."""
    lost = Sample("#### 1", "1", extra={"server_url": broken, "timeout": 2})  # expires
    told = [one(sample, f"{FUNCTION}.path={PACKAGE}")["reward_extra_info"] for sample in (OWN_NAMES[0], lost)]
    columns = {key: [row[key] for row in told] for key in KEYS}
    metrics = process_validation_metrics(["openai/gsm8k"] * 2, ["a", "b"], columns)
    assert metrics["openai/gsm8k"]["failed"]["mean@1"] == metrics["openai/gsm8k"]["acc"]["mean@1"] == 0.5
    report(2, "failed in val-aux")


def test_example_without_gpu(needs_process: None, tmp_path: Path, report: Report) -> None:
    """Without a GPU the script of README.md says what it needs and shows a command, which verl can read."""
    folders = [str(Path(sys.executable).parent), str(ROOT / ".venv/bin")]
    variables = {"PATH": ":".join([*folders, os.environ["PATH"]]), "DATA": str(tmp_path), "REWARD": "judge"}
    script = [str(ROOT / "examples/verl/run_gsm8k.sh"), "trainer.total_epochs=3"]
    done = subprocess.run(script, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    said, _, shown = done.stdout.partition("It would run:\n")
    assert done.returncode == 1, done.stderr
    assert "Nothing was trained.\nIt needs GPUs: 1 of 24 GB (nvidia-smi finds none).\n" in said
    _, *words = shlex.split(shown)
    configured = subprocess.check_output([sys.executable, *words, "--cfg", "job", "--package", "reward"], text=True)
    for line in (f"path: {PACKAGE}", "data_source: llm_judge_remote", "name: naive"):
        assert line in configured, configured
    report(0, "the example without a GPU")
