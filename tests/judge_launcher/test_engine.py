"""The command line and environment that vLLM is started with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from services.judge import engine
from services.judge.engine import Options, Vllm
from services.judge.model import Model
from services.models import machine
from services.stack.errors import StackError

ROOT = Path(__file__).resolve().parents[2]
CASES = json.loads((ROOT / "tests/cases/vllm_command.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["holds"])
def test_command(case: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case holds the flags it names, lacks those it names, and has its environment."""
    monkeypatch.setattr(machine, "shared_memory", lambda: case.get("shared_mib", 1024) * 2**20)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    vllm = Vllm("/venv/bin/python", case["version"], case.get("template_defaults", True))
    model = Model("org/model", "name", case.get("local", False))
    options = Options(**{**case["options"], "further": tuple(case["options"].get("further", ()))})
    command = engine.command(vllm, model, ["--uds", "/run/judge.sock"], options)
    assert command[:5] == ["/venv/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "org/model"]
    text = " ".join(command)
    assert [flag for flag in [*case["has"], "--uds /run/judge.sock"] if flag not in text] == []
    assert [flag for flag in case["lacks"] if flag in text] == []
    assert command[len(command) - len(case.get("ends", [])) :] == case.get("ends", [])
    if "environment" in case:
        assert engine.environment(vllm, model, case.get("gpus", []), "2") == case["environment"]


def test_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter's vLLM is found with its version and what it knows; one without is no error."""
    assert engine.find(sys.executable) is None
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("stub")))
    found = engine.find(sys.executable)
    assert found == Vllm(sys.executable, "0.0.1+cpu", template_defaults=True)
    assert found.for_cpu
    with pytest.raises(StackError, match="/no/python does not run"):
        engine.find("/no/python")
