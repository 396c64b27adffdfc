"""Two real replicas, one of which stops in the middle of a batch."""

from __future__ import annotations

import threading
import time

import pytest

from rewardstack import Request, Score, score
from tests.judge_vllm.conftest import PROBLEM, REFERENCE, RIGHT
from tests.support.vllm import VllmServer

SAMPLES = 64
EXTRA = {"problem": PROBLEM, "prompt_template": "binary", "timeout": 300}


def test_one_freezes(vllm: VllmServer, qwen3_like: VllmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many samples in flight a replica that accepts and does not answer costs none of them, and comes back."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", f"{vllm.url},{qwen3_like.url}")
    scores: list[Score] = []
    batch = threading.Thread(target=lambda: scores.extend(judged("during", SAMPLES)))
    batch.start()
    time.sleep(1.0)
    qwen3_like.freeze()
    try:
        batch.join()
    finally:
        qwen3_like.thaw()

    assert SAMPLES == len(scores)
    assert {"ok"} == {one.status for one in scores}, {one.reason for one in scores}
    assert {"ok"} == {one.status for one in judged("afterwards", 16)}


def judged(name: str, count: int) -> list[Score]:
    """The scores of so many different samples."""
    return score([Request("llm_judge_remote", f"{RIGHT} ({name} {at})", REFERENCE, EXTRA) for at in range(count)])
