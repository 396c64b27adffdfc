"""The command line and environment that vLLM is started with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from services.judge import engine
from services.judge.engine import Vllm
from services.judge.model import Model
from services.models import machine
from services.stack.errors import StackError
from services.stack.settings import load

ROOT = Path(__file__).resolve().parents[2]
CASES = json.loads((ROOT / "tests/cases/vllm_command.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["holds"])
def test_command(case: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case has the flags that it names, or its shared file has, lacks those it names, and has its environment."""
    monkeypatch.setattr(machine, "shared_memory", lambda: case.get("shared_mib", 1024) * 2**20)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    vllm = Vllm("/venv/bin/python", case["version"])
    model = Model("org/model", "name", case.get("local", False))
    command = engine.command(vllm, model, ["--uds", "/run/judge.sock"], load(ROOT, case["settings"]))
    assert command[:5] == ["/venv/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "org/model"]
    text = " ".join(command)
    assert [flag for flag in [*case["has"], "--uds /run/judge.sock"] if flag not in text] == []
    assert [flag for flag in case["lacks"] if flag in text] == []
    assert command[len(command) - len(case.get("ends", [])) :] == case.get("ends", [])
    shared = Path(command[command.index("--config") + 1])
    flags = shared.read_text() if shared.exists() else ""
    assert [flag for flag in case.get("config", []) if f"\n{flag}\n" not in flags] == []
    assert [flag for flag in case.get("config_lacks", []) if f"\n{flag}" in flags] == []
    if "environment" in case:
        assert engine.environment(vllm, model, case.get("gpus", []), "2") == case["environment"]


def test_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter's vLLM is found with its version; one without is no error."""
    assert engine.find(sys.executable) is None
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("stub")))
    found = engine.find(sys.executable)
    assert found == Vllm(sys.executable, "0.0.1+cpu")
    assert found.is_cpu_build
    with pytest.raises(StackError, match="/no/python does not run"):
        engine.find("/no/python")
