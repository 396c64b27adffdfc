"""What a judge is shown is the same on every way: Python, the reward server, jobs, files, explanations, dry runs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client, score
from rewardstack.settings import DEFAULTS
from rewardstack_cli.main import main
from tests.client.judge.conftest import FAKE_JUDGE, JUDGE
from tests.client.judge.test_conversation import PNG
from tests.jobs.conftest import Site, site
from tests.support.explaining import explained, named
from tests.support.servers import FaultServer

pytestmark = [pytest.mark.usefixtures("needs_process"), pytest.mark.nightly]

PIXEL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
TASK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image"}]},
]
TRACE = [
    {"role": "assistant", "content": "I look.", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "content": "a dot"},
    {"role": "assistant", "content": "<think>Hm.</think>A dot."},
]
TEMPLATE = "{PROBLEM}\n{CANDIDATE_SOLUTION}\n{CRITERIA}\nREWARD: <number from 1 to 10>"
RUBRICS = [{"criterion": "Names a dot", "points": 2}, {"criterion": "Is rude", "points": -1}]
RUBRIC = {"verdict": "rubric", "rubrics": RUBRICS}
SAMPLES: list[dict[str, Any]] = [
    {
        "prompt": TASK,
        "images": [PIXEL],
        "view": "full_trace",
        "verdict": "rubric",
        "rubrics": RUBRICS,
        "max_criteria": 1,
    },
    {"messages": [TASK[0], *TRACE], "hide_reasoning": False, "view": "full_trace", "system_prompt": "Judge."},
    {"problem": "p", "prompt_template": TEMPLATE, "score_range": [1, 10], "rubrics": RUBRICS},
]
VALUES = [1.0, 0.5, 0.5]
ITEMS: list[dict[str, Any]] = [
    {
        "data_source": JUDGE,
        "solution_str": "A dot." if "messages" in extra else TRACE,
        "ground_truth": None if "problem" in extra or "rubrics" in extra else "x",
        "extra_info": {"temperature": 0, **extra},
    }
    for extra in SAMPLES
]
Prompts = list[str]


@pytest.fixture(scope="module")
def judge() -> Iterator[FaultServer]:
    """A judge that answers rubrics by their words, other prompts by half of the scale."""
    one = FaultServer(script=FAKE_JUDGE)
    yield one
    one.kill()


@pytest.fixture
def ask(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Prompts]:
    """Reset the judge; what is returned gives the messages that it was sent since."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", judge.url)
    monkeypatch.setenv("REWARD_CACHE", "off")
    return lambda: sorted(json.dumps(body["messages"]) for body in judge.stats()["bodies"])


def reset(judge: FaultServer) -> None:
    """Forget what was sent."""
    judge.set(reset=True, met=["dot"], by_model={"small": "REWARD: 0.5"}, replies=[])


@pytest.fixture
def expected(judge: FaultServer, ask: Callable[[], Prompts]) -> Prompts:
    """What the judge is sent by Python."""
    reset(judge)
    scores = score([Request(**item) for item in ITEMS[:2]])
    assert [(one.value, one.status) for one in scores] == [(1.0, "ok"), (0.5, "ok")], scores
    return ask()


@pytest.fixture
def here(tmp_path: Path, judge: FaultServer) -> Iterator[Site]:
    """A reward server with a queue and a worker."""
    with site(tmp_path, LLM_JUDGE_SERVER_URL=judge.url, REWARD_CACHE="off") as one:
        one.add_worker()
        yield one


def test_every_way(
    here: Site, judge: FaultServer, ask: Callable[[], Prompts], expected: Prompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge is sent the same by a relay, over HTTP, and by a job."""
    assert 3 == len(expected) and any("image_url" in one for one in expected)
    reset(judge)
    assert [1.0, 0.5] == [one["value"] for one in here.server.score(*ITEMS[:2])]
    assert ask() == expected
    reset(judge)
    job_id = here.submit(*ITEMS[:2])
    assert "finished" == here.end_of(job_id)["status"]
    assert ask() == expected
    reset(judge)
    monkeypatch.delenv("LLM_JUDGE_SERVER_URL")
    monkeypatch.setenv("REWARD_SERVER_URL", here.server.url)
    monkeypatch.setattr(client, "_clients", {})
    assert [1.0, 0.5] == [one.value for one in score([Request(**item) for item in ITEMS[:2]])]
    assert ask() == expected


def test_files_explanations_and_dry_runs(
    judge: FaultServer,
    ask: Callable[[], Prompts],
    expected: Prompts,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command line scores a file alike; a dry run counts every request; an explanation shows what was sent."""
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in ITEMS[:2]))
    reset(judge)
    assert 0 == main(["score", str(path), "--output", str(tmp_path / "scores.jsonl")])
    assert ask() == expected
    capsys.readouterr()
    assert 0 == main(["score", str(path), "--dry-run"])
    row = next(line for line in capsys.readouterr().out.splitlines() if JUDGE in line)
    assert ["2", "0", "3"] == re.findall(r"\d[\d,]*", row)[:3], row
    reset(judge)
    found = explained(Request(**ITEMS[0]))
    sent = named(found.steps, "request for a verdict")
    assert found.score is not None and found.score.value == 1.0
    assert [{"1": "yes"}, {"1": "no"}] == [one["answers read"] for one in sent]
    assert all("Tool output" in one["user"] and "characters)" in one["images"][0] for one in sent)


def test_a_scale_and_criteria_together(judge: FaultServer, ask: Callable[[], Prompts]) -> None:
    """A template with {CRITERIA} is read on its own scale."""
    judge.set(reset=True, content="REWARD: 5.5")
    [one] = score([Request(**ITEMS[2])])
    assert (one.value, one.status) == (0.5, "ok")
    assert "Names a dot (+2 points)" in ask()[0]
