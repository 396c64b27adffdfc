"""`examples/skyrl`, without SkyRL: what its data, its scripts and its logs give; `make trainers` has the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest

from tests.support.snippets import block

from .conftest import ROOT, SOURCES

pytestmark = pytest.mark.usefixtures("needs_process")
EXAMPLE = ROOT / "examples/skyrl"
PAGE = "examples/skyrl/README.md"
FIRST = "examples/llm_as_a_judge_local"
"""The folder under which the example was first published."""
RUNS = ("rule_based", "llm_judge_local", "rule_based_async", "llm_judge_local_async")


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    given = {"PATH": path, "HOME": "/nonexistent", "PYTHONPATH": SOURCES, **variables}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("script", "environment"),
    [
        (f"{FIRST}/gsm8k_dataset_local.py", "llm_as_a_judge_local"),
        ("examples/gsm8k/gsm8k_dataset.py", "gsm8k"),
        ("examples/skyrl/gsm8k_dataset.py", "gsm8k"),
    ],
)
def test_data(script: str, environment: str, tmp_path: Path) -> None:
    """Either reward's data has SkyRL's columns and names its environment; a step's 16 rows are there."""
    given = ("--input", EXAMPLE / "sample", "--output_dir", tmp_path)
    done = run(sys.executable, script, *given)
    assert done.stdout == f"{tmp_path}/train.parquet: 32 rows\n{tmp_path}/validation.parquet: 8 rows\n", done.stderr
    for row in pyarrow.parquet.read_table(tmp_path / "train.parquet").to_pylist():
        assert [*row] == ["data_source", "prompt", "extra_info", "env_class", "reward_spec"]
        assert row["env_class"] == environment
        assert row["reward_spec"] == {"method": "rule", "ground_truth": row["extra_info"]["answer"].split("#### ")[1]}
        assert row["prompt"][0]["content"].startswith(row["extra_info"]["question"])
    assert "16 rows" in run(sys.executable, script, *given, "--train_rows", "16").stdout


def test_no_such_data(tmp_path: Path) -> None:
    """Data that is not there is an error that says so."""
    done = run(sys.executable, EXAMPLE / "gsm8k_dataset_local.py", "--input", "./none", "--output_dir", tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: INPUT: there is no file or folder ./none\n")


@pytest.mark.parametrize("name", RUNS)
def test_without_gpu(name: str) -> None:
    """A script says all that it needs, and what it tells SkyRL beside its defaults; further arguments come last."""
    done = run("bash", f"{FIRST}/run_{name}.sh", "trainer.seed=7", PYTHON=sys.executable)
    assert (done.returncode, done.stderr) == (1, "")
    needs, _, shown = done.stdout.partition("its configuration:\n")
    gpus = 1 + ("judge" in name) + ("async" in name)
    assert f"  GPUs: {gpus}; there are 0\n  skyrl in {sys.executable}" in needs
    assert "/train.parquet; README.md" in needs and ("SKYRL_HOME" in needs) is ("async" in name)
    lines = shown.splitlines()
    assert "trainer.policy.model.path=Qwen/Qwen2.5-0.5B-Instruct" in lines and lines[-1] == "trainer.seed=7"


def test_engines() -> None:
    """Each engine of the judge takes a GPU more."""
    script = EXAMPLE / "run_llm_judge_local.sh"
    assert "GPUs: 5;" in run("bash", script, PYTHON=sys.executable, REWARD_NUM_ENGINES="4").stdout


def test_tables(tmp_path: Path) -> None:
    """Of the logs that are shipped come the tables of the page, and a plot with a curve for each run."""
    logs = [EXAMPLE / f"sample_logs/{name}.log" for name in RUNS]
    done = run(sys.executable, EXAMPLE / "compare_runs.py", *logs, "--plot", tmp_path / "rewards.svg")
    assert done.stdout == block(PAGE, "markdown", "### Throughput"), done.stderr
    assert len(ElementTree.parse(tmp_path / "rewards.svg").findall("{*}polyline")) == len(RUNS)


def test_log_of_none(tmp_path: Path) -> None:
    """A log of no run, or without a step, is refused."""
    (tmp_path / "other.log").touch()
    (tmp_path / "rule_based.log").touch()
    assert "other.log is of none of" in run(sys.executable, EXAMPLE / "compare_runs.py", tmp_path / "other.log").stderr
    done = run(sys.executable, EXAMPLE / "compare_runs.py", tmp_path / "rule_based.log")
    assert "rule_based.log has no step; trainer.logger has to be console" in done.stderr
