"""`make status json=1`: what programs read of a stack, whichever way it runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.up.compose import commands as compose
from services.up.compose.project import Container
from services.up.native import commands as native
from services.up.native.supervisor import State


def test_local_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each service has state, process, uptime in seconds and health; one that is not healthy makes it fail."""
    states = [State("rules", "RUNNING", 17, 60), State("gateway", "FATAL", 0, 0)]
    running = SimpleNamespace(services=["rules", "gateway", "judge"], ports={"REWARD_PORT": 6000}, backend="apptainer")
    monkeypatch.setattr(native, "Supervisor", lambda run: SimpleNamespace(states=lambda: states))
    monkeypatch.setattr(native.health, "problem", lambda name, run, running: "" if name == "rules" else "it is gone")
    monkeypatch.setattr(RunDir, "load", lambda self: running)
    with pytest.raises(StackError, match="unhealthy: gateway, judge"):
        native.status(RunDir(str(tmp_path)), True)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said == {
        "deployment": "apptainer",
        "services": [
            {"service": "rules", "state": "running", "pid": 17, "uptime": 60, "health": "ok"},
            {"service": "gateway", "state": "fatal", "pid": None, "uptime": 0, "health": "it is gone"},
            # Stopped by a `make up` that was interrupted, so that supervisord knows of none.
            {"service": "judge", "state": "stopped", "pid": None, "uptime": 0, "health": "it is gone"},
        ],
        "ports": {"REWARD_PORT": 6000},
    }


def test_killed_supervisor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Services that outlive their supervisord are not taken for nothing."""
    supervision = SimpleNamespace(states=list, members=lambda: [4711])
    monkeypatch.setattr(native, "Supervisor", lambda run: supervision)
    with pytest.raises(StackError, match="services run here, but their supervisord does not answer — make up"):
        native.status(RunDir(str(tmp_path)))


def test_containers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each container has its service, state, health and ports, and nothing else is printed."""
    one = Container("rewardstack-rules-1", "rules", "0a", "running", "healthy", "Up 2 minutes (healthy)", (6000,))
    project = SimpleNamespace(containers=lambda: [one])
    monkeypatch.setattr(compose, "_load", lambda run: (SimpleNamespace(services=["rules"]), project))
    compose.status(RunDir(str(tmp_path)), True)
    [service] = json.loads(capsys.readouterr().out)["services"]
    expected = {"service": "rules", "container": "rewardstack-rules-1", "state": "running", "health": "ok"}
    assert service == {**expected, "status": "Up 2 minutes (healthy)", "ports": [6000]}
