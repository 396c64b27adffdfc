"""ROLL's `RewardSystemHandler`, which submits a sample and then asks for its result.

ROLL is not on PyPI (what has its name there is something else), and its worker imports torch, Ray and its own
scheduler, so the handler is stood in for, after `roll/pipeline/rlvr/rewards/remote_reward_system_worker.py` of commit
8eb27cc: what it sends and reads, its 32 threads, five rounds of five tries, and the 0 with a warning at the end. Its
pauses are a thousandth here.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import requests

from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report
from tests.trainers.outage import refusing

SHORT = 0.001
HEADERS = {"Content-Type": "application/json", "XRL-Authorization": "Bearer none", "BusinessType": "online"}
SECONDS = 20
"""That ROLL waits for an answer."""
TASK_SECONDS = 300


def submit_task(url: str, number: int, response: str, info: dict[str, Any]) -> str | None:
    """Stands in for the method of this name: the id of a task, None after five tries."""
    body = {
        "priority": 1, "project_id": "roll_default_task_id", "experiment_id": "roll_default_task_id", "global_step": 0,
        "data_id": str(number), "rollout_id": f"{number}_0", "prompt": "What is 6 * 7?", "response": response,
        "reward_info": info, "reward_manager": [], "timeout": TASK_SECONDS,
    }  # fmt: skip
    for attempt in range(1, 6):
        try:
            reply = requests.post(f"{url}/roll/submit?reward_type=gsm8k", headers=HEADERS, json=body, timeout=SECONDS)
            reply.raise_for_status()
            if int(reply.json().get("errcode", -1)) == 0:
                return str(reply.json()["reward_request_id"])
        except (requests.RequestException, ValueError) as error:
            logging.warning("Try %d out of 5 times, %s", attempt, error)
        time.sleep(SHORT)
    return None


def get_task_result(url: str, ident: str) -> float | None:
    """Stands in for the method of this name: GET with a body, until the task has ended."""
    while True:
        reply = requests.get(f"{url}/roll/result", headers=HEADERS, json={"reward_request_id": ident}, timeout=SECONDS)
        reply.raise_for_status()
        said = reply.json()
        if int(said.get("errcode", -1)) == 0:
            return said.get("reward_score")
        time.sleep(2 * SHORT)


def get_reward(url: str, row: tuple[int, str, dict[str, Any]]) -> float:
    """Stands in for what a thread does."""
    for _ in range(5):
        ident = submit_task(url, *row)
        score = None if ident is None else get_task_result(url, ident)
        if score is not None:
            return score
    logging.warning("Failed to get reward from rewared system. %s", row)
    return 0


def rewards(url: str, responses: list[str], **info: Any) -> list[float]:
    """Stands in for `multi_thread_request_reward_system`."""
    rows = [(number, response, info) for number, response in enumerate(responses)]
    with ThreadPoolExecutor(32) as pool:
        return list(pool.map(partial(get_reward, url), rows))


def test_rewards(reward_url: str, report: Report) -> None:
    """Each sample has the reward of its response, through submission and result."""
    assert rewards(reward_url, ["#### 42", "#### 41"] * 16, ground_truth="42", image_url="x") == [1.0, 0.0] * 16
    report(32, "submitted and asked for (a stand-in after commit 8eb27cc)")


def test_recovery(reward_url: str, caplog: pytest.LogCaptureFixture, report: Report) -> None:
    """A server that answers 503 six times and then recovers costs a round of tries, and no reward."""
    with refusing(reward_url, 6) as way:
        assert rewards(way.url, ["recovered #### 42"], ground_truth="42") == [1.0]
    assert caplog.text.count("503 Server Error") == 6
    report(1, "503 six times, then scored")


def test_outage(caplog: pytest.LogCaptureFixture, report: Report) -> None:
    """With no server ROLL counts 0, which its log tells of 25 times with the cause, and once with the sample."""
    tried, given_up = (line[:16] for line in block("docs/trainers.md", "", "Try 5 out of 5").splitlines())
    assert rewards(f"http://127.0.0.1:{free_port()}", ["#### 42"], ground_truth="42") == [0]
    assert caplog.text.count("Connection refused") == 25
    assert (caplog.text.count(tried), caplog.text.count(given_up)) == (5, 1)
    report(1, "no server: ROLL's own 0, with its warnings")


def test_unknown(reward_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """What the server refuses stands in ROLL's log with the reason."""
    submit_task(f"{reward_url}/roll/submit?reward_type=gsm9k#", 0, "#### 42", {"ground_truth": "42"})
    assert "reward_type 'gsm9k' is not known" in caplog.text
