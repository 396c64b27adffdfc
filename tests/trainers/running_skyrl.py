"""The example for SkyRL and the environment's entrypoint, with the installed skyrl, in a Ray cluster without GPUs.

`make trainers` runs this file. What needs GPUs is fake: the policy, its tokenizer, the judge's engine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.stack.rundir import ROOT
from tests.ray_judge.cluster import environment, logical
from tests.support.snippets import block
from tests.trainers.conftest import Report

pytestmark = [pytest.mark.usefixtures("needs_process"), pytest.mark.timeout(600)]
EXAMPLE = ROOT / "examples/skyrl"
"""Also found at `examples/llm_as_a_judge_local`."""
SCRIPTS = {"rule_based": 1, "llm_judge_local": 2, "rule_based_async": 2, "llm_judge_local_async": 3}
"""Each with the GPUs that it needs."""
REWARD = ("environment.env_class", "data.train_data", "data.val_data")
MODE = "trainer.placement.colocate_all"
SHARED = {
    "trainer.policy.model.path": "Qwen/Qwen2.5-0.5B-Instruct",
    "trainer.algorithm.advantage_estimator": "grpo",
    "generator.n_samples_per_prompt": 4,
    "trainer.train_batch_size": 16,
    "trainer.policy_mini_batch_size": 16,
    "trainer.policy.optimizer_config.lr": 1e-6,
    "trainer.logger": "console",
}
"""What the documentation of the example says of all four."""
STEPS = 256
TYPED_DICT = "import typing, typing_extensions\ntyping.TypedDict = typing_extensions.TypedDict\n"
"""What SkyRL 0.3.0 needs on Python 3.11, where pydantic takes no other; on 3.12 it changes nothing."""
JUDGED = """
import functools, sys
import main_llm_judge_local as example
from tests.ray_judge.fake_engine import FakeEngine
sys.argv[0] = example.__file__
example.start_reward_service = functools.partial(example.start_reward_service, engine=FakeEngine)
example.main("tests.trainers.skyrl_experiment:Episodes")
"""
"""The example's entrypoint, whose engine needs no model."""
OVERRIDDEN = """
import functools
from rewardstack.trainers import skyrl
from skyrl.train.entrypoints import main_base
skyrl.train = functools.partial(skyrl.train, experiment="tests.trainers.skyrl_experiment:Episodes")
main_base.main()
"""
"""SkyRL's entrypoint, which is told by its configuration to call that of the environment."""

VALID = """
import json, sys
from omegaconf import OmegaConf
from rewardstack.trainers.skyrl import compose
from skyrl.train.utils.utils import validate_cfg
kind = type(compose([], "llm_as_a_judge_local"))
for one in json.load(sys.stdin).values():
    validate_cfg(kind.from_dict_config(OmegaConf.create(one)))
"""
"""SkyRL's own checks of configurations."""
THREADS = """
import json, sys
from skyrl.train import utils
from skyrl.train.utils import utils as checks
from rewardstack.trainers.skyrl import NAME, configure
utils.initialize_ray = checks.validate_cfg = lambda config: None
print(json.dumps([getattr(configure(one).environment.skyrl_gym, NAME).threads for one in json.load(sys.stdin)]))
"""
"""The number of responses that an environment expects SkyRL to score concurrently."""
LOGGED = """
import json, sys
from loguru import logger
from skyrl.train.utils.tracking import Tracking
logger.remove()
logger.add(sys.stdout)
tracking = Tracking("project", "run", "console")
for step, numbers in json.load(sys.stdin).items():
    tracking.log(numbers, step=int(step))
"""
"""What SkyRL prints of a run's numbers."""


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of processes that import SkyRL, the example and the tests."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "sitecustomize.py").write_text(TYPED_DICT)
    path = os.pathsep.join(map(str, (folder, ROOT, EXAMPLE)))
    return {"PYTHONPATH": path, "PYTHON": sys.executable, "LLM_JUDGE_SERVER_TIMEOUT": "5"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Iterator[dict[str, str]]:
    """The variables of processes that are to be in a cluster of Ray."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", variables["PYTHONPATH"])
        with logical(home, processors=8, gpus=0) as found:
            yield environment({**found, **variables}, home)


def run(command: list[str], variables: dict[str, str], given: Any = None) -> str:
    """What a command printed that succeeds, which reads JSON."""
    done = subprocess.run(
        command, cwd=ROOT, env=variables, input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def prepared(folder: Path, script: str, variables: dict[str, str]) -> Path:
    """The training data that one of the example's scripts makes of the shipped sample."""
    command = [sys.executable, str(EXAMPLE / script), "--input", str(EXAMPLE / "sample"), "--output_dir", str(folder)]
    assert "32 rows" in run(command, {**os.environ, **variables})
    return folder / "train.parquet"


def scored(driver: str, arguments: list[str], out: Path, variables: dict[str, str]) -> list[dict[str, Any]]:
    """What an entrypoint's experiment left."""
    given = [f"trainer.export_path={out}", f"trainer.log_path={out.parent}", "trainer.logger=console", *arguments]
    sizes = [f"trainer.{name}=16" for name in ("train_batch_size", "policy_mini_batch_size")]
    run([sys.executable, "-c", driver, *given, *sizes, "generator.n_samples_per_prompt=8"], variables)
    batches: list[dict[str, Any]] = yaml.safe_load(out.read_text())
    return batches


def test_judge_in_ray(tmp_path: Path, cluster: dict[str, str], variables: dict[str, str], report: Report) -> None:
    """The example starts a judge in Ray and SkyRL's generator has it score; once it is gone, that is in the metrics."""
    data = prepared(tmp_path / "data", "gsm8k_dataset_local.py", variables)
    arguments = [f"data.train_data=['{data}']", "environment.env_class=llm_as_a_judge_local"]
    alive, dead = scored(JUDGED, arguments, tmp_path / "scored.json", cluster)

    assert len(alive["rewards"]) == STEPS and all(0 <= reward <= 1 for reward in alive["rewards"])
    assert len({*alive["rewards"]}) > STEPS / 4
    assert (alive["logged"]["environment/ok"], alive["logged"]["environment/failed"]) == (1, 0)
    assert ({*dead["rewards"]}, dead["logged"]["environment/failed"]) == ({0.0}, 1)
    report(STEPS, "judge in Ray under SkyRL's generator, its end in environment/failed")


def test_entrypoint(tmp_path: Path, cluster: dict[str, str], reward_url: str, report: Report) -> None:
    """Two lines of SkyRL's configuration have it score the rows that verl reads, by the route of each."""
    command = [
        sys.executable,
        "-m",
        "rewardstack_cli",
        "prepare",
        "gsm8k",
        str(EXAMPLE / "sample"),
        "-o",
        str(tmp_path),
    ]
    run(command, cluster)
    lines = block("docs/trainers.md", "", "trainer.override_entrypoint").split()
    arguments = [f"data.train_data=['{tmp_path}/train.parquet']", *lines]
    [batch] = scored(OVERRIDDEN, arguments, tmp_path / "scored.json", {**cluster, "REWARD_SERVER_URL": reward_url})

    assert {*batch["rewards"]} <= {0.0, 1.0} and len(batch["rewards"]) == STEPS
    assert batch["logged"]["environment/ok"] == 1
    report(STEPS, "rule by trainer.override_entrypoint")


def compositions(variables: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What each script shows where there is no GPU, after it has said what it needs."""
    started = {
        name: subprocess.Popen(
            ["bash", str(EXAMPLE / f"run_{name}.sh")], cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE
        )
        for name in SCRIPTS
    }
    shown = {}
    for name, process in started.items():
        printed = process.communicate()[0].decode()
        needs, _, text = printed.partition("its configuration:\n")
        assert process.returncode == 1 and f"GPUs: {SCRIPTS[name]}; there are 0" in needs, printed
        assert "  skyrl" not in needs and "train.parquet" in needs, printed
        assert ("SKYRL_HOME" in needs) is ("async" in name), printed
        shown[name] = yaml.safe_load(text)
    return shown


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """A nested configuration by its keys as they are written on a command line."""
    if not isinstance(value, dict):
        return {path: value}
    return {name: one for key, part in value.items() for name, one in flat(part, f"{path}.{key}".strip(".")).items()}


def test_four_configurations(variables: dict[str, str], report: Report) -> None:
    """The four that SkyRL composes of the scripts differ in the reward and the mode alone, and are as documented."""
    shown = compositions(variables)
    run([sys.executable, "-c", VALID], {**os.environ, **variables}, shown)
    whole = {name: flat(one) for name, one in shown.items()}
    keys = {key for one in whole.values() for key in one}
    differ = {key for key in keys if len({str(one.get(key)) for one in whole.values()}) > 1}
    named = {"trainer.run_name", "trainer.ckpt_path"}
    assert differ - named == {*REWARD, MODE}
    for name, one in whole.items():
        judged, together = "judge" in name, "async" not in name
        assert one["environment.env_class"] == ("llm_as_a_judge_local" if judged else "gsm8k")
        assert all(("llm_judge_local" in str(one[key])) is judged for key in REWARD[1:])
        assert (one[MODE], one["trainer.run_name"]) == (together, name)
        assert {key: one[key] for key in SHARED} == SHARED
    report(0, "four configurations differ in reward and mode alone")


def test_logs(tmp_path: Path, variables: dict[str, str], report: Report) -> None:
    """The tables are made of what SkyRL's own logger prints, and tell of samples that failed."""
    steps = {step: {"timing/step": 10.0 + step, "reward/avg_raw_reward": step / 10} for step in (1, 2, 5)}
    steps[5]["environment/failed"] = 0.25
    log = tmp_path / "llm_judge_local.log"
    log.write_text(run([sys.executable, "-c", LOGGED], {**os.environ, **variables}, steps))
    printed = run([sys.executable, str(EXAMPLE / "compare_runs.py"), str(log)], {**os.environ, **variables})

    assert "| Step time | 13.5s |" in printed and "| Generate | — |" in printed
    assert "| 1 | 0.100 |" in printed and "| 5 | 0.500 |" in printed and "| 10 | — |" in printed
    assert "failed in 1 steps, up to 25.0% of the samples, at step 5; they count as 0" in printed
    report(0, "tables of its logs")


def test_threads(variables: dict[str, str]) -> None:
    """An environment knows how many responses SkyRL scores concurrently: its workers, or one."""
    gym = "environment.skyrl_gym.max_env_workers"
    given = [[], [f"{gym}=3"], [f"{gym}=0"], ["generator.batched=true"]]
    assert json.loads(run([sys.executable, "-c", THREADS], {**os.environ, **variables}, given)) == [32, 3, 1, 1]
