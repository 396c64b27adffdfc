"""Judges that compare groups, as the trainers' functions call them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack import client, register_judge
from rewardstack.errors import RequestError
from rewardstack.trainers import openrlhf, slime
from rewardstack.trainers.columns import Columns
from rewardstack.trainers.ms_swift import reward
from rewardstack.trainers.trl import reward_func
from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.servers import FaultServer

TEXTS = ["It is 10.", "It is 80.", "It is 30.", "It is 60."]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A judge by the name of `ruler` that compares candidates by their numbers."""
    one = FaultServer(script=FAKE_JUDGE)
    one.set(compares=True)
    monkeypatch.setattr(client, "_registered", {})
    yield one
    one.kill()


def register(judge: FaultServer, **table: Any) -> None:
    """Register the judge."""
    register_judge("ruler", {"base_url": judge.url, "compare": "listwise", "orders": 1, **table})


@pytest.mark.parametrize("blocking", [True, False])
async def test_trl(judge: FaultServer, blocking: bool) -> None:
    """TRL's batch has whole groups, also two of one prompt; each is one request."""
    register(judge, group_size=2)
    func: Any = reward_func("ruler", reference=None, blocking=blocking)
    found = func(prompts=["p"] * 4 + ["q"] * 2, completions=[*TEXTS, *TEXTS[:2]], completion_ids=[[1]] * 6)
    rewards = await found if inspect.isawaitable(found) else found
    assert [0.1, 0.8, 0.3, 0.6, 0.1, 0.8] == rewards
    assert 3 == judge.stats()["requests"]


async def test_trl_samples_more_than_a_group(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A `group_size` that divides the completions of a prompt is warned about once: they are compared in parts."""
    register(judge, group_size=3)
    func: Any = reward_func("ruler", reference=None)
    for _ in range(2):
        await func(prompts=["p"] * 6, completions=[*TEXTS, "It is 20.", "It is 50."])
    assert caplog.text.count("group_size is 3, and a batch has 6 responses to one prompt") == 1


async def test_trl_divides_a_group(judge: FaultServer) -> None:
    """A group that TRL divides over processes ends the training, and the error names the batch setting."""
    register(judge, group_size=4)
    func: Any = reward_func("ruler", reference=None)
    with pytest.raises(RequestError, match="3 members in this batch.* set group_size to num_generations"):
        await func(prompts=["p"] * 3, completions=TEXTS[:3])


async def test_ms_swift(judge: FaultServer) -> None:
    """ms-swift needs a group's size, and whole groups."""
    register(judge)
    func = reward("ruler", Columns("ruler", None, (), {}), "raise", None)
    messages = [[{"role": "user", "content": "p"}, {"role": "assistant", "content": text}] for text in TEXTS]
    with pytest.raises(
        RequestError, match="compares groups, but no group_size is set; set it to the number of completions"
    ):
        await func(TEXTS, messages)
    client._registered.clear()
    register(judge, group_size=4)
    assert [0.1, 0.8, 0.3, 0.6] == await func(TEXTS, messages)
    with pytest.raises(RequestError, match="per_device_train_batch_size"):
        await func(TEXTS[:3], messages[:3])


async def test_slime(judge: FaultServer) -> None:
    """A group of slime is one call, and one request."""
    register(judge)
    fields: dict[str, Any] = {"prompt": "p", "label": None, "metadata": {}}
    samples = [SimpleNamespace(index=at, response=text, **fields) for at, text in enumerate(TEXTS)]
    assert [0.1, 0.8, 0.3, 0.6] == await slime.reward(SimpleNamespace(rm_type="ruler"), samples)
    assert 1 == judge.stats()["requests"]


def test_skyrl(skyrl: Any, judge: FaultServer) -> None:
    """A group with more members than SkyRL has workers could never be complete, which is refused by its setting."""
    register(judge, group_size=4, group_wait=50)

    def reward(text: str, threads: int) -> Any:
        env = skyrl.RewardstackEnv({"threads": threads}, {"data_source": "ruler"})
        env.init([{"role": "user", "content": "p"}])
        return env.step(text).reward

    with ThreadPoolExecutor(4) as threads:
        assert [0.1, 0.8, 0.3, 0.6] == list(threads.map(lambda text: reward(text, 4), TEXTS))
    with pytest.raises(
        RequestError, match="4 members, but only 3 threads score samples.* environment.skyrl_gym.max_env_work"
    ):
        reward("a", 3)


async def test_other_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A route that scores each sample alone needs no groups."""
    monkeypatch.setattr(client, "_registered", {})
    func: Any = reward_func("length", reference=None, extra_info={"max_length": 3})
    assert 3 == len(await func(prompts=["p"] * 3, completions=TEXTS[:3]))


def test_openrlhf(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group with more members than OpenRLHF has threads could never be complete, which is refused."""
    register(judge, group_size=4, group_wait=50)
    monkeypatch.setenv("REWARD_TYPE", "ruler")
    monkeypatch.setattr(openrlhf, "THREADS", 4)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda text: openrlhf.reward_func([f"p{text}"], ["p"], None)["rewards"], TEXTS)
        assert [[0.1], [0.8], [0.3], [0.6]] == list(found)
    monkeypatch.setattr(openrlhf, "THREADS", 3)
    with pytest.raises(RequestError, match="a group has 4 members, but only 3 threads score samples"):
        openrlhf.reward_func(["pa"], ["p"], None)
