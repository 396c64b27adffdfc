"""Inspect evaluates with rewardstack's scorer: its own task, samples and log, a model that says what it is told to."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval, score
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from rewardstack.trainers.inspect_ai import rewardstack
from services.stack.rundir import ROOT
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report

SAMPLES = [Sample("What is 6 * 7?", target="42"), Sample("Name a prime below 4.", target=["2", "3"])]


def model(*replies: str) -> Model:
    """A model that gives these replies; with counts, for Inspect's own need a table from the network."""
    outputs = [ModelOutput.from_content("mockllm/model", reply) for reply in replies]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model("mockllm/model", custom_outputs=outputs)


def evaluated(folder: Path, scorer: Any) -> EvalLog:
    """The log of an evaluation, of which the second answer is the second reference."""
    task = Task(SAMPLES, scorer=scorer)
    [log] = eval(task, model=model("#### 41", "#### 3"), max_samples=1, display="none", log_dir=str(folder))
    return log


def means(log: EvalLog) -> float:
    """The mean that the log has."""
    assert log.results
    return float(log.results.scores[0].metrics["mean"].value)


def test_scores(tmp_path: Path, report: Report) -> None:
    """Rules tell right from wrong, any reference counts, and a log is scored again by the judge."""
    log = evaluated(tmp_path, rewardstack("gsm8k"))
    again = score(log, rewardstack("llm_judge_remote"), action="overwrite", display="none")

    assert (log.status, means(log)) == ("success", 0.5) and 0 <= means(again) <= 1
    assert log.samples and [next(iter((one.scores or {}).values())).value for one in log.samples] == [0.0, 1.0]
    report(4, "eval by a rule, its log again by the judge")


def test_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """Inspect reads the example's file, whose questions have the answers that they should."""
    monkeypatch.chdir(ROOT)
    replies = model("#### 35", "#### 42", "#### 27")
    path = "examples/inspect/gsm8k_rewarded.py"
    found = eval(path, model=replies, max_samples=1, display="none", log_dir=str(tmp_path))

    assert means(found[0]) == pytest.approx(2 / 3)
    report(3, "the example")


def test_page(needs_process: None, report: Report) -> None:
    """The page's lines make a task."""
    dataset = (
        "from inspect_ai import Task\nfrom inspect_ai.dataset import Sample\ndataset = [Sample('a', target='b')]\n"
    )
    lines = block("docs/harnesses.md", "python", "from rewardstack.trainers.inspect_ai")
    subprocess.run([sys.executable, "-c", dataset + lines], check=True)
    report(0, "the page's lines")


def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward server is not there."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "2")  # expires


def test_unscored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """An outage is no 0: the samples are unscored, with the reason, and the mean is none."""
    gone(monkeypatch)
    log = evaluated(tmp_path, rewardstack("gsm8k"))

    assert math.isnan(means(log)) and log.samples
    for sample in log.samples:
        [found] = (sample.scores or {}).values()
        assert (found.reason, found.metadata and found.metadata["failed"]) == ("grader_failed", 1.0)
        assert "refused" in (found.explanation or "")
    report(2, "an outage is unscored")


def test_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """With `on_error="raise"` an outage ends the evaluation in an error, which can be tried again."""
    gone(monkeypatch)
    log = evaluated(tmp_path, rewardstack("gsm8k", on_error="raise"))

    assert log.status == "error" and log.error and "failed" in log.error.message
    report(2, "or an error")
