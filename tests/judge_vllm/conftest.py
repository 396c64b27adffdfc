"""Run real judges: the small demo model, and the same model with Qwen3's control tokens and reasoning parser."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from rewardstack import Request, Score, score
from rewardstack.settings import DEFAULTS
from services.judge.model import SMALL, Model
from tests.support.vllm import VllmServer, models, running

QWEN3_LIKE = Path(__file__).with_name("qwen3_like.py")
CASES = Path(__file__).resolve().parents[1] / "cases"
CONTROL_TOKENS = CASES / "judge_control_tokens.json"
PROBLEM = "A baker sells 12 loaves a day on five days and 30 on Saturday. How many in the week?"
REFERENCE = "5 * 12 = 60 and 60 + 30 = 90. The answer is 90."
RIGHT = "Five days of 12 loaves are 60, with Saturday 60 + 30 = 90. The answer is 90."
WRONG = "12 + 30 = 42. The answer is 42."


@pytest.fixture(autouse=True)
def environment(vllm: VllmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the developer's settings, use the small demo model as the judge, and keep only one cached score."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", vllm.url)
    monkeypatch.setenv("REWARD_CACHE_ITEMS", "1")


@pytest.fixture(scope="session")
def qwen3_like(needs_model: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """Run a second server with Qwen3's control tokens and reasoning parser, and the small model's weights and name."""
    folder = tmp_path_factory.mktemp("qwen3-like")
    here = models()
    arguments = [QWEN3_LIKE, here.small_judge, folder / "model", CONTROL_TOKENS]
    subprocess.run([here.python, *map(str, arguments)], check=True, capture_output=True)
    model = Model(source=str(folder / "model"), name=SMALL, is_local=True)
    with running(folder / "log", "--reasoning-parser", "qwen3", model=model) as server:
        yield server


def judge(candidate: str, reference: Any = REFERENCE, **extra: Any) -> Score:
    """Return the score of a candidate for `PROBLEM`."""
    [one] = score([Request("llm_judge_remote_bakery", candidate, reference, {"problem": PROBLEM, **extra})])
    return one


def post(server: VllmServer, path: str, **body: Any) -> Any:
    """Post a request directly to a server and return the parsed reply."""
    reply = requests.post(server.url + path, json={"model": server.model.name, **body}, timeout=60)
    reply.raise_for_status()
    return reply.json()
