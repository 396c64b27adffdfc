"""Align-Anything's client and the one that takes its place, as its trainers `ppo_remote_rm` ask for rewards.

Align-Anything is not on PyPI, so its own client is stood in for, after commit 3f9decc
(`align_anything/models/remote_rm/remote_rm_client.py`): what is posted, three tries, the error at the end. Of torch,
which is large, both want `torch.tensor` alone, in whose place is a list. The configuration is that of
`configs/train/text_to_text/ppo_remote_rm.yaml`.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import requests

from rewardstack.errors import RejectedError, ServiceError
from tests.support.servers import free_port
from tests.trainers.conftest import Report
from tests.trainers.outage import refusing

DROP_IN = Path(__file__).parents[2] / "examples/align_anything/remote_rm_client.py"
PROMPTS = ["What is 6 * 7?"] * 32
RESPONSES = ["<think>.</think><answer>$42$</answer>", "<think>.</think><answer>$41$</answer>"] * 16
GOLDEN = ["42"] * 32
EXPECTED = [1.5, 0.5] * 16


class Original:
    """Stands in for `RemoteRewardModel` of Align-Anything."""

    def __init__(self, endpoint: str, timeout: int = 100, retry_times: int = 3) -> None:
        self.endpoint, self.timeout, self.retry_times = endpoint, timeout, retry_times

    def score(self, prompts: list[str], responses: list[str]) -> Any:
        """Any failure is tried again."""
        body = {"prompts": prompts, "responses": responses}
        for _ in range(self.retry_times):
            try:
                reply = requests.post(self.endpoint, json=body, timeout=self.timeout)
                if reply.status_code == 200:
                    return reply.json()["rewards"]
            except requests.RequestException as error:
                logging.warning("Remote reward API request error: %s", error)
                time.sleep(0.01)
        raise RuntimeError(f"Failed to get rewards from API, tried {self.retry_times} times")


@pytest.fixture
def drop_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The file of the example, as it stands in Align-Anything's folder afterwards."""
    torch = ModuleType("torch")
    torch.tensor, torch.Tensor = list, list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    spec = importlib.util.spec_from_file_location("remote_rm_client", DROP_IN)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RemoteRewardModel


def made(kind: Any, url: str) -> Any:
    """The client as the trainer makes it of its configuration."""
    cfgs = SimpleNamespace(remote_rm_url=f"{url}/get_reward", remote_rm_timeout=100, remote_rm_retry_times=3)
    return kind(cfgs.remote_rm_url, timeout=cfgs.remote_rm_timeout, retry_times=cfgs.remote_rm_retry_times)


def test_original(reward_url: str, report: Report) -> None:
    """Align-Anything's own client has rewards; without a data set's answers those of the format alone."""
    assert made(Original, reward_url).score(PROMPTS[:2], ["<think>.</think><answer>a</answer>", "b"]) == [0.0, 0.0]
    url = f"{reward_url}/get_reward?reward_type=length"
    assert len(Original(url).score(PROMPTS, RESPONSES)) == 32
    report(34, "its own client (a stand-in after commit 3f9decc)")


def test_drop_in(drop_in: Any, reward_url: str, report: Report) -> None:
    """The client that takes its place has the rewards of a batch, and what became of each sample."""
    client = made(drop_in, reward_url)
    assert (client.score(PROMPTS, RESPONSES, GOLDEN), client.statuses) == (EXPECTED, ["ok"] * 32)
    report(32, "the client in its place")


def test_no_reference(drop_in: Any, reward_url: str, caplog: pytest.LogCaptureFixture, report: Report) -> None:
    """Where the server knows no answers a reward is 0 with a warning that counts them."""
    assert made(drop_in, reward_url).score(PROMPTS, RESPONSES) == [0.0] * 32
    assert "32 of 32 samples have no score (failed: 0, unscored: 32)" in caplog.text
    report(32, "no reference: 0, and a warning")


def test_recovery(drop_in: Any, reward_url: str, report: Report) -> None:
    """A server that answers 503 twice and then recovers costs no reward."""
    with refusing(reward_url, 2) as way:
        assert made(drop_in, way.url).score(PROMPTS, RESPONSES, GOLDEN) == EXPECTED
    report(32, "503 twice, then scored")


def test_outage(drop_in: Any, report: Report) -> None:
    """With no server the error names it and the cause."""
    port = free_port()
    with pytest.raises(ServiceError, match=rf"127\.0\.0\.1:{port}/get_reward: connection refused"):
        drop_in(f"http://127.0.0.1:{port}/get_reward", timeout=5, retry_times=2).score(PROMPTS, RESPONSES)
    report(32, "no server: an error that names it and the cause")


def test_unknown(drop_in: Any, reward_url: str, report: Report) -> None:
    """A reward type that there is not is an error at the first try, which names it."""
    with pytest.raises(RejectedError, match="'gsm9k' is not known"):
        drop_in(f"{reward_url}/get_reward?reward_type=gsm9k").score(PROMPTS, RESPONSES)
    report(32, "unknown reward type: an error that names it")
