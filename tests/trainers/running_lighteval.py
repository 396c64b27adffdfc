"""lighteval evaluates with the page's metric, by its own pipeline and a model that says what it is told to.

Its own tasks are not read, for one of them fetches a file from the network when it is.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.models.dummy.dummy_model import DummyModel, DummyModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc

from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report

REPLIES = {"38": "#### 35", "6 rows": "#### 13", "9 times 8": "#### 72"}
ROWS = [
    {"question": "A tram has 38 seats and 3 are broken. How many can be sat on?", "answer": "35"},
    {"question": "A box holds 6 rows of 7 eggs. How many are that?", "answer": "42"},
    {"question": "What is 9 times 8?", "answer": "72"},
]
TASK = """
def ask(line, task_name=None):
    return Doc(task_name=task_name, query=line["question"], choices=[line["answer"]], gold_index=0)


TASKS_TABLE = [
    LightevalTaskConfig(
        name="rewarded", prompt_function=ask, hf_repo={folder!r}, hf_subset="default", hf_avail_splits=["test"],
        evaluation_splits=["test"], metrics=[reward], generation_size=64, stop_sequence=[],
    )
]
"""
"""A task as lighteval's custom tasks are; the metric before it is the page's."""


class Told(DummyModel):
    """A model that says what `REPLIES` has for what is asked."""

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """The replies."""
        return [ModelResponse(text=[next(r for word, r in REPLIES.items() if word in doc.query)]) for doc in docs]


def mean(folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """The mean reward of the three questions."""
    for name in ("HF_HOME", "HF_DATASETS_CACHE"):
        monkeypatch.setenv(name, str(folder / "cache"))
    data = folder / "data"
    data.mkdir()
    (data / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    imports = (
        "from lighteval.tasks.lighteval_task import LightevalTaskConfig\nfrom lighteval.tasks.requests import Doc\n"
    )
    tasks = folder / "rewarded_tasks.py"
    tasks.write_text(imports + block("docs/harnesses.md", "python", "import math") + TASK.format(folder=str(data)))
    monkeypatch.setattr(Registry, "_load_from_files", lambda files, package: {})
    monkeypatch.setattr(Registry, "_load_from_subdirs", lambda folders: {})
    pipeline = Pipeline(
        tasks="rewarded|0",
        pipeline_parameters=PipelineParameters(ParallelismManager.NONE, custom_tasks_directory=str(tasks)),
        evaluation_tracker=EvaluationTracker(output_dir=str(folder / "out")),
        model=Told(DummyModelConfig(cache_dir=str(folder / "cache"))),
    )
    pipeline.evaluate()
    return float(pipeline.get_results()["results"]["all"]["reward"])


def test_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """The metric is the mean reward."""
    assert mean(tmp_path, monkeypatch) == pytest.approx(2 / 3)
    report(3, "a metric that scores all samples at once")


def test_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """Without the server there is no mean, rather than 0."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "1")  # expires
    assert math.isnan(mean(tmp_path, monkeypatch))
    report(3, "an outage is nan")
