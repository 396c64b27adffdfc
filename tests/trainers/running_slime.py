"""slime's ways to a reward, `--rm-type remote_rm` and `--custom-rm-path` (`slime/rollout/rm_hub/__init__.py`).

slime is not on PyPI (what has its name there is something else), so its code is stood in for, after commit 624b824:
what is posted, how often and when it is tried again, how a function is found and called, alone and for a group. Its
pauses between tries are a thousandth here. The function does not retry: the client's transport does.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from rewardstack.errors import ScoringError
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report
from tests.trainers.outage import refusing

SHORT = 0.001
PATH = "rewardstack.trainers.slime.reward"
MESSAGES = [{"role": "user", "content": "What is 6 * 7?"}]
RESPONSES = ["#### 42", "#### 41"] * 16
EXPECTED = [1.0, 0.0] * 16


def arguments(**given: Any) -> SimpleNamespace:
    """Of slime's command line, those that its rewards read."""
    return SimpleNamespace(**{"custom_rm_path": None, "rm_type": None, "rm_url": None, "group_rm": False, **given})


def sample(response: str, label: Any = "42", **given: Any) -> SimpleNamespace:
    """What a reward reads of slime's `Sample`."""
    fields = {"index": 7, "prompt": MESSAGES, "metadata": {}, "custom_rm_path": None, **given}
    return SimpleNamespace(response=response, label=label, **fields)


async def remote_rm(args: Any, one: Any, max_retries: int = 10) -> Any:
    """Stands in for the function of this name."""
    payload = {"prompt": one.prompt, "response": one.response, "label": one.label}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as session:
        for attempt in range(max_retries):
            try:
                async with session.post(args.rm_url, json=payload) as reply:
                    reply.raise_for_status()
                    return await reply.json()
            except Exception as error:
                if attempt + 1 >= max_retries:
                    logging.warning("remote_rm failed after %d attempts: %s", attempt + 1, error)
                    raise
                await asyncio.sleep(min(2**attempt, 30) * SHORT)


async def async_rm(args: Any, one: Any) -> Any:
    """Stands in for the function of this name."""
    path = one.custom_rm_path or args.custom_rm_path
    return await (load_function(path)(args, one) if path else remote_rm(args, one))


async def batched_async_rm(args: Any, samples: list[Any]) -> Any:
    """Stands in for the function of this name, which `--group-rm` calls with a group."""
    if args.custom_rm_path is not None:
        return await load_function(args.custom_rm_path)(args, samples)
    return await asyncio.gather(*(async_rm(args, one) for one in samples))


def load_function(path: str) -> Any:
    """Stands in for the function of this name (`slime/utils/misc.py`)."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("by", ["HTTP", "function"])
async def test_rewards(by: str, reward_url: str, report: Report) -> None:
    """Each sample has its reward, a bare number, by HTTP and by the function."""
    http = arguments(rm_type="remote_rm", rm_url=f"{reward_url}/get_reward?reward_type=gsm8k")
    args = http if by == "HTTP" else arguments(rm_type="gsm8k", custom_rm_path=PATH)
    got = await asyncio.gather(*(async_rm(args, sample(response)) for response in RESPONSES))
    assert (got, {*map(type, got)}) == (EXPECTED, {float})
    report(32, f"by {by} (a stand-in after commit 624b824)")


async def test_group(report: Report) -> None:
    """A group is scored at once, and a sample's own route counts before that of the command line."""
    args = arguments(rm_type="exact_match", custom_rm_path=PATH, group_rm=True)
    group = [sample(response, metadata={"data_source": "gsm8k"}) for response in RESPONSES]
    assert await batched_async_rm(args, [*group, sample("42")]) == [*EXPECTED, 1.0]
    report(33, "a group by function")


async def test_judge(report: Report) -> None:
    """The function reaches a judge without a reward server between."""
    args = arguments(rm_type="llm_judge_remote", custom_rm_path=PATH)
    got = await batched_async_rm(args, [sample(f"It is {number}.") for number in range(4)])
    assert all(0 <= one <= 1 for one in got)
    report(4, "the judge by function")


@pytest.mark.parametrize(("by", "times"), [("HTTP", 9), ("function", 2)])
async def test_recovery(by: str, times: int, reward_url: str, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """A server that answers 503 and then recovers costs no reward: slime's tenth try, or the transport's third."""
    with refusing(reward_url, times) as way:
        monkeypatch.setenv("REWARD_SERVER_URL", way.url)
        http = arguments(rm_type="remote_rm", rm_url=f"{way.url}/get_reward?reward_type=gsm8k")
        args = http if by == "HTTP" else arguments(rm_type="gsm8k", custom_rm_path=PATH)
        assert await async_rm(args, sample(f"{by}: #### 42")) == 1.0
    assert way.asked > times
    report(1, f"503 {times} times by {by}, then scored")


@pytest.mark.parametrize("by", ["HTTP", "function"])
async def test_outage(by: str, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """With no server the last of slime's ten tries, or the function's call, is an error that says so."""
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("REWARD_SERVER_URL", url)
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "1")  # expires
    http = arguments(rm_type="remote_rm", rm_url=f"{url}/get_reward")
    args = http if by == "HTTP" else arguments(rm_type="gsm8k", custom_rm_path=PATH)
    with pytest.raises((aiohttp.ClientError, ScoringError), match=r"Connect call failed"):
        await async_rm(args, sample(f"{by}: #### 42 for nobody"))
    report(1, f"no server by {by}: an error")


@pytest.mark.parametrize("by", ["HTTP", "function"])
def test_no_label(by: str, reward_url: str, report: Report) -> None:
    """A sample without a label is an error that names it, and no 0, as the page shows it."""
    shown = dict(zip(("HTTP", "function"), block("docs/trainers.md", "", "remote_rm failed").splitlines(), strict=True))
    http = arguments(rm_type="remote_rm", rm_url=f"{reward_url}/get_reward?reward_type=gsm8k")
    args = http if by == "HTTP" else arguments(rm_type="gsm8k", custom_rm_path=PATH)
    with pytest.raises((aiohttp.ClientResponseError, ScoringError)) as caught:
        asyncio.run(async_rm(args, sample("#### 42", None, index=3)))
    assert str(caught.value).partition("url=")[0].partition("the column")[0] in shown[by]
    report(1, f"no label by {by}: an error that names it")
