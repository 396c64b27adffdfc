"""`rewardstack check` against real judges."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.vllm import VllmServer


def check(url: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it."""
    environment = {**os.environ, "LLM_JUDGE_SERVER_URL": url, "COLUMNS": "250", **variables}
    command = [sys.executable, "-m", "rewardstack_cli", "check"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_judge_without_thinking(vllm: VllmServer) -> None:
    """A judge that works shows its verdict, what its template does not know, and that its labels have all the floor."""
    done = check(vllm.url)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{vllm.model.name} │ verdict " in done.stdout
    assert "its template does not honor enable_thinking" in done.stdout
    assert "label mass 0.9" in done.stdout


def test_judge_behind_a_parser(qwen3_like: VllmServer) -> None:
    """So does one behind a reasoning parser whose template honors `enable_thinking`."""
    done = check(qwen3_like.url)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{qwen3_like.model.name} │ verdict " in done.stdout
    assert "enable_thinking" not in done.stdout
    assert "label mass 0." in done.stdout and "below label_mass_floor" not in done.stdout


def test_another_model(vllm: VllmServer) -> None:
    """A model that the judge does not serve is named, and so is one that it does."""
    done = check(vllm.url, LLM_JUDGE_MODEL="Qwen/Qwen3-32B")

    assert done.returncode == 1
    assert "it does not serve 'Qwen/Qwen3-32B'" in done.stdout
    assert f"set LLM_JUDGE_MODEL to one that it serves: {vllm.model.name}" in done.stdout
