"""OpenRLHF's own executor of single turns, which asks for rewards by HTTP or of a file.

`openrlhf` and `openrlhf.utils` are stood in for by empty packages of the same folders, for the latter imports torch,
transformers and deepspeed, which need CUDA; `openrlhf.utils.agent` and its logger are as they were installed. The
engine and the tokenizer, of which the executor wants a text and its tokens, are a few lines.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack.trainers import openrlhf as rewards
from tests.support.servers import free_port
from tests.support.snippets import ROOT, block
from tests.trainers.conftest import Report
from tests.trainers.hollow import hollow
from tests.trainers.outage import refusing

PARAMETERS = SimpleNamespace(max_tokens=64, logprobs=None)
PROMPT = "<|im_start|>user\nWhat is 6 * 7?<|im_end|>\n<|im_start|>assistant\n"
RIGHT, WRONG = "6 * 7 = 42\n#### 42<|im_end|>", "#### 41<|im_end|>"
BOTH = {RIGHT: 1.0, WRONG: 0.0}


@pytest.fixture(scope="module")
def executor() -> Iterator[Any]:
    """The class, from the installed package."""
    hollow("openrlhf", "utils")
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    yield SingleTurnAgentExecutor


@pytest.fixture
def log(executor: Any, caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the trainer logs, which it does not hand on to the root logger."""
    logger = logging.getLogger("openrlhf.utils.agent")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


class Tokens(list[int]):
    """What a tokenizer gives for `return_tensors="pt"`, as far as it is used: a row of numbers."""

    def tolist(self) -> list[int]:
        return list(self)


class Tokenizer:
    """A token a character."""

    def __call__(self, text: str, **_: Any) -> dict[str, list[Tokens]]:
        return {"input_ids": [Tokens(map(ord, text))]}

    def decode(self, tokens: list[int], **_: Any) -> str:
        return "".join(map(chr, tokens))


class Engine:
    """Says the same to every prompt."""

    def __init__(self, response: str) -> None:
        output = SimpleNamespace(token_ids=[*map(ord, response)], text=response, finish_reason="stop", logprobs=None)
        self.reply = SimpleNamespace(outputs=[output])

    async def generate(self, *_: Any, **__: Any) -> Any:
        return self.reply


def rollouts(executor: Any, responses: list[str], label: Any = "42") -> list[dict[str, Any]]:
    """What the executor makes of a prompt with each of the responses, all at the same time."""

    async def run() -> list[dict[str, Any]]:
        return await asyncio.gather(
            *(executor.execute(PROMPT, label, PARAMETERS, 4096, Tokenizer(), Engine(one)) for one in responses)
        )

    return asyncio.run(run())


def assert_scored(outputs: list[dict[str, Any]], responses: list[str]) -> None:
    expected = [[BOTH[one]] for one in responses]
    assert [one["reward"] for one in outputs] == expected
    assert [one["scores"] for one in outputs] == expected
    assert all(one["extra_logs"] == {"failed": [0.0], "unscored": [0.0]} for one in outputs)


def test_http(executor: Any, reward_url: str, report: Report) -> None:
    """Over HTTP each sample has its reward, its score and its logs, and several servers are asked in turn."""
    responses = [RIGHT, WRONG] * 16
    with refusing(reward_url, 0) as one, refusing(reward_url, 0) as other:
        urls = [f"{way.url}/get_reward?reward_type=gsm8k" for way in (one, other)]
        outputs = rollouts(executor(urls), responses)
    assert_scored(outputs, responses)
    assert (one.asked, other.asked) == (16, 16)
    report(32, "HTTP, two URLs in turn")


def test_file(executor: Any, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """By the file it is the same, and a label that is missing is told in the logs."""
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")
    by_file = executor(rewards.__file__)
    responses = [RIGHT, WRONG] * 16
    assert_scored(rollouts(by_file, responses), responses)
    [output] = rollouts(by_file, [RIGHT], label="")
    assert (output["reward"], output["extra_logs"]) == ([0.0], {"failed": [0.0], "unscored": [1.0]})
    report(33, "the .py path")


def test_judge(executor: Any, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """The file reaches a judge without a reward server between."""
    monkeypatch.setenv("REWARD_TYPE", "llm_judge_remote")
    outputs = rollouts(executor(rewards.__file__), [f"It is {number}." for number in range(4)])
    assert all(0 <= one["reward"][0] <= 1 and one["extra_logs"]["failed"] == [0.0] for one in outputs)
    report(4, "the judge by the .py path")


def test_recovery(executor: Any, reward_url: str, report: Report) -> None:
    """A server that answers 503 twice and then recovers costs OpenRLHF two of its five tries, and no reward."""
    with refusing(reward_url, 2) as way:
        [output] = rollouts(executor(f"{way.url}/get_reward?reward_type=gsm8k"), [RIGHT])
    assert_scored([output], [RIGHT])
    assert way.asked == 3
    report(1, "503 twice, its third try scored")


@pytest.mark.parametrize("by", ["HTTP", "file"])
def test_outage(
    by: str, executor: Any, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture, report: Report
) -> None:
    """With no server there is no reward, None and not 0, and the cause stands in the trainer's log.

    Its experience maker then refuses: reward_model_group is required when rewards are not precomputed.
    """
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("REWARD_SERVER_URL", url)
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "2")  # expires
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")
    monkeypatch.setattr("asyncio.sleep", _brief_sleep)
    [output] = rollouts(executor(f"{url}/get_reward" if by == "HTTP" else rewards.__file__), [RIGHT + "?"])
    assert (output["reward"], output["scores"], output["extra_logs"]) == (None, None, {})
    assert f"Connect call failed ('127.0.0.1', {url.rpartition(':')[2]})" in log.text
    report(1, f"no server by {by}: None, and the cause in its log")


@pytest.mark.parametrize("by", ["HTTP", "file"])
def test_unknown(
    by: str,
    executor: Any,
    reward_url: str,
    monkeypatch: pytest.MonkeyPatch,
    log: pytest.LogCaptureFixture,
    report: Report,
) -> None:
    """An unknown reward type returns no reward, and the trainer's log names it and the known types."""
    monkeypatch.setenv("REWARD_TYPE", "gsm9k")
    monkeypatch.setattr("asyncio.sleep", _brief_sleep)
    path = f"{reward_url}/get_reward?reward_type=gsm9k" if by == "HTTP" else rewards.__file__
    [output] = rollouts(executor(path), [RIGHT])
    assert output["reward"] is None
    assert "'gsm9k'" in log.text and "gsm8k" in log.text
    report(1, f"unknown reward type by {by}: named in its log")


_sleep = asyncio.sleep


async def _brief_sleep(seconds: float, *_: Any) -> None:
    """In the place of pauses of a second between tries that have no chance."""
    await _sleep(min(seconds, 0.01))


def test_options(executor: Any) -> None:
    """The options that the page and the example set are of the installed command line."""
    [folder] = sys.modules["openrlhf"].__path__
    parser = (Path(folder) / "cli/train_ppo_ray.py").read_text()
    places = [
        block("docs/trainers.md", "", "--reward.remote_url"),
        block("docs/trainers.md", "bash", "REWARD_TYPE=llm_judge_remote"),
        (ROOT / "examples/openrlhf/train.sh").read_text().partition("\ntrain ")[2],
    ]
    options = {option for text in places for option in re.findall(r"^ *--([a-z_.]+)", text, re.MULTILINE)}
    unknown = [
        one for one in options if f'"--{one}"' not in parser and f"--{{prefix}}.{one.partition('.')[2]}" not in parser
    ]
    assert len(options) > 15 and not unknown
