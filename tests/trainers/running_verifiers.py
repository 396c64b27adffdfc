"""verifiers' tasks are scored by its own code: NeMo Gym's task set by HTTP, a plugged reward by the client.

A rollout needs a model and a sandbox; here a trace has a reply as a rollout leaves it. What is asked are verifiers' own
`Task.setup` and `Task.score`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import httpx
import pytest
import verifiers.v1 as vf
from verifiers.v1 import graph
from verifiers.v1.errors import TaskError
from verifiers.v1.tasksets.nemo_gym import NeMoGymConfig, NeMoGymTask, NeMoGymTaskConfig, NeMoGymTaskset
from verifiers.v1.tasksets.nemo_gym.toolset import NeMoGymState

from rewardstack.core.deadline import HEADER
from services.stack.rundir import ROOT
from tests.support.servers import free_port
from tests.support.snippets import block, blocks_of
from tests.trainers.conftest import Report

REPLIES = [("#### 35", 1.0), (r"It is \boxed{0.125}.", 1.0), (r"It is \boxed{144}.", 0.0)]
"""To the tasks of the example, and the score of each."""
PLUG = {"rewardstack": {"fn": "rewardstack.trainers.verifiers:reward"}}


class Data(vf.TaskData):
    """A task's data as a data set may have them."""

    data_source: str = ""
    answer: str | None = None


def scored(task: Any, reply: str) -> vf.Trace:
    """The trace of a reply, scored by the task; raises what the rollout would record."""
    state = {"state": NeMoGymState()} if isinstance(task, NeMoGymTask) else {}
    told = vf.TraceTask(type=type(task).__name__, data=task.data)
    trace = vf.Trace(agent=vf.AgentInfo(config=vf.AgentConfig()), task=told, **state)
    message = vf.AssistantMessage(content=reply)
    answer = vf.Response(id="r", created=0, model="m", message=message, finish_reason="stop")
    graph.prepare_turn(trace, [vf.UserMessage(content=task.data.prompt_text)]).commit(answer)

    async def run() -> None:
        await task.setup(trace, None)
        await task.score(trace)

    asyncio.run(run())
    return trace


def gym_tasks(**config: Any) -> list[NeMoGymTask]:
    """The example's tasks, by verifiers' own reader."""
    data = ROOT / "examples/nemo_gym/tasks.jsonl"
    return list(NeMoGymTaskset(NeMoGymConfig(dataset=data, task=NeMoGymTaskConfig(**config))).load())


def plugged(**data: Any) -> Any:
    """A task without a reward of its own, whose configuration plugs one."""
    return vf.Task[Data](Data(idx=0, prompt="What is 6 * 7?", **data), vf.TaskConfig(rewards=PLUG))


def test_resources_url(reward_url: str, report: Report) -> None:
    """NeMo Gym's task set is scored by the reward server where it only knows the address."""
    tasks = gym_tasks(resources_url=reward_url)
    traces = [scored(task, reply) for task, (reply, _) in zip(tasks, REPLIES, strict=True)]

    assert [worth for _, worth in REPLIES] == [trace.reward for trace in traces]
    assert not any("mask_sample" in trace.metrics for trace in traces)
    report(len(traces), "NeMo Gym's task set by resources_url")


def test_resources_url_fails(reward_url: str, report: Report) -> None:
    """What the server could not score is masked and says why; a server that is gone is the task's error."""
    [first, *_] = gym_tasks(resources_url=reward_url, headers={HEADER: "0"})
    trace = scored(first, "#### 35")
    assert (trace.reward, trace.metrics["mask_sample"]) == (0.0, 1.0)
    assert trace.info["nemo_gym"]["failure_reason"]

    [first, *_] = gym_tasks(resources_url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(httpx.ConnectError):
        scored(first, "#### 35")
    report(2, "failures masked, an error where the server is gone")


def test_plug(report: Report) -> None:
    """A configuration's line is enough: rules and the judge score what the data name."""
    samples = [("gsm8k", "#### 42"), ("gsm8k", "#### 41"), ("llm_judge_remote", "42")]
    traces = [scored(plugged(data_source=source, answer="42"), reply) for source, reply in samples]

    right, wrong, judged = [trace.reward for trace in traces]
    assert (right, wrong) == (1, 0) and 0 <= judged <= 1
    assert [trace.info["rewardstack"]["status"] for trace in traces] == ["ok"] * 3
    report(len(traces), "task.rewards with a rule and the judge")


def test_example(report: Report) -> None:
    """The example's own tasks reward by `@vf.reward`, as the page shows it."""
    path = ROOT / "examples/verifiers/taskset.py"
    assert textwrap.indent(block("docs/trainers.md", "python", "@vf.reward"), "    ") in path.read_text()
    spec = importlib.util.spec_from_file_location("taskset", path)
    assert spec and spec.loader
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    tasks = module.RewardedTaskset(vf.TasksetConfig()).load()

    assert [scored(task, "6 * 7 = 42\n#### 42").reward for task in tasks] == [1.0, 0.0]
    report(len(tasks), "@vf.reward")


def test_page(needs_process: None, tmp_path: Path, report: Report) -> None:
    """verifiers' command reads the page's configuration, with both ways at once, and the example's."""
    page = [text for language, text in blocks_of("docs/trainers.md") if language == "toml"]
    (tmp_path / "page.toml").write_text("push = false\n" + "\n".join(page))
    written = block("examples/verifiers/README.md", "bash", "vf-eval").replace("MODEL", "m")
    for command in (written, f"vf-eval @ {tmp_path}/page.toml -m m"):
        program, *words = shlex.split(command)
        there = str(Path(sys.executable).with_name(program))
        asked = [there, *words, "--dry-run", "--output-dir", str(tmp_path / "out")]
        subprocess.run(asked, cwd=ROOT, check=True)

    found = [json.loads(path.read_text()) for path in (tmp_path / "out").rglob("eval.json")]
    assert {str(one["env"]["taskset"]["task"]["resources_url"]) for one in found} == {"http://localhost:6000"}
    report(0, "its command reads the configurations")


@pytest.mark.parametrize(
    ("data", "there", "says"),
    [
        ({"data_source": "gsm8k", "answer": "42"}, False, "sample 0: failed"),
        ({"data_source": "gsm8k"}, True, "unscored: the reference"),
        ({"answer": "42"}, True, "the task's data have no such field"),
    ],
)
def test_failure(
    monkeypatch: pytest.MonkeyPatch, reward_url: str, report: Report, data: dict[str, Any], there: bool, says: str
) -> None:
    """A sample without a score is an error of the task, which says why; its reward stays open."""
    monkeypatch.setenv("REWARD_SERVER_URL", reward_url if there else f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "2")  # expires
    with pytest.raises(TaskError, match=says):
        scored(plugged(**data), "#### 42")
    report(1, f"an error that says {says.partition(':')[0]}")
