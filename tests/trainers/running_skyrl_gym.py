"""SkyRL's environments, of skyrl-gym alone, on a live reward server and judge; `running_skyrl.py` has the rest."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import skyrl_gym
from skyrl_gym.envs import register
from skyrl_gym.metrics import aggregate_for_environment

from rewardstack.errors import RequestError, ScoringError
from rewardstack.trainers.skyrl import NAME
from tests.support.servers import free_port
from tests.trainers.conftest import Report

pytestmark = pytest.mark.timeout(300)
STEPS, THREADS = 256, 32
QUESTION = "A box holds 6 rows of 7 eggs. How many eggs is that?"
RULE = {"data_source": "gsm8k", "reward_model": {"style": "rule", "ground_truth": "42"}}
JUDGED = {
    "data_source": "llm_judge_remote",
    "reward_spec": {"method": "rule", "ground_truth": "42"},
    "extra_info": {"question": QUESTION},
}


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    """The environment has its name, as within SkyRL's entrypoint."""
    register(id=NAME, entry_point="rewardstack.trainers.skyrl:RewardstackEnv")


def episode(extras: dict[str, Any], action: str, config: Any = None) -> tuple[dict[str, Any], dict[str, float]]:
    """What a step gives and the metrics behind it, got as SkyRL's generator gets them."""
    env = skyrl_gym.make(NAME, env_config=config or {}, extras={**extras, "max_turns": 1})
    prompt, _ = env.init([{"role": "user", "content": QUESTION}])
    assert prompt == [{"role": "user", "content": QUESTION}]
    step = env.step(action)
    metrics = env.get_metrics()
    env.close()
    return step, metrics


async def episodes(rows: list[tuple[dict[str, Any], str]], config: Any = None) -> list[Any]:
    """Those of several responses, in the pool of threads that SkyRL's generator has."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="skyrl-gym-env-") as pool:
        asked = [loop.run_in_executor(pool, episode, extras, action, config) for extras, action in rows]
        return await asyncio.gather(*asked)


def test_steps(reward_url: str, report: Report) -> None:
    """Rules and the judge score responses over 32 threads, wherever the row has its reference."""
    actions = [f"6 * 7 = {41 + one % 2}\n#### {41 + one % 2}" for one in range(STEPS // 2)]
    rows = [(extras, action) for action in actions for extras in (RULE, JUDGED)]
    done = asyncio.run(episodes(rows))

    rewards = [step["reward"] for step, _ in done]
    assert rewards[::2] == [float(one % 2) for one in range(STEPS // 2)]
    assert all(0 <= reward <= 1 for reward in rewards[1::2])
    for step, metrics in done:
        assert (step["observations"], step["done"], step["metadata"]["status"]) == ([], True, "ok")
        assert metrics["ok"] == 1 and "score" not in metrics
    logged = aggregate_for_environment(NAME, [metrics for _, metrics in done])
    assert (logged["ok"], logged["failed"]) == (1, 0)
    report(STEPS, f"{THREADS} threads, rule and judge")


def test_dead(reward_url: str, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """Where the judge is gone a reward is 0 and said to have failed, in metadata and metrics; or the step raises."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("LLM_JUDGE_SERVER_REFUSED_TIMEOUT", "2")  # expires
    done = asyncio.run(episodes([(JUDGED, f"It is {one}.") for one in range(THREADS)] + [(RULE, "#### 42")]))

    dead, alive = done[:-1], done[-1]
    assert {(step["reward"], step["metadata"]["status"]) for step, _ in dead} == {(0.0, "failed")}
    assert all("connection refused" in step["metadata"]["reason"] for step, _ in dead)
    assert alive[0]["reward"] == 1
    logged = aggregate_for_environment(NAME, [metrics for _, metrics in done])
    assert logged["failed"] == pytest.approx(THREADS / (THREADS + 1))

    with pytest.raises(ScoringError, match="connection refused"):
        episode(JUDGED, "It is 42.", {"on_error": "raise"})
    report(THREADS + 1, "dead judge told")


def test_refused(reward_url: str) -> None:
    """What SkyRL has no place for is refused with a reason: None, and a row without a route."""
    with pytest.raises(RequestError, match="assert"):
        episode(JUDGED, "It is 42.", {"on_error": "none"})
    with pytest.raises(RequestError, match="data_source"):
        episode({}, "It is 42.")


def test_one_route(reward_url: str) -> None:
    """The environment's own configuration has every row scored by one route."""
    rewards = [episode(RULE, text, {"data_source": "exact_match"})[0]["reward"] for text in ("42", "#### 42")]
    assert rewards == [1.0, 0.0]
