"""Which model servers `make up` starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.models import environment, machine
from services.models.machine import GIB
from services.stack import settings
from services.stack.errors import StackError
from services.up import model_servers
from services.up.model_servers import EMBEDDING, JUDGE

ROOT = Path(__file__).resolve().parents[2]
CASES = json.loads((ROOT / "tests/cases/model_servers.json").read_text())


def load(**values: object) -> settings.Settings:
    """The shipped settings, and what a test changes."""
    return settings.load(ROOT, {name: str(value) for name, value in values.items()})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["holds"])
def test_choice(case: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case starts what it names, says why the others are left out, and warns of what may not fit."""
    monkeypatch.setattr(machine, "free_memory", lambda: int(case.get("free_gib", 64) * GIB))
    monkeypatch.setattr(machine, "shared_memory", lambda: case.get("shared_mib", 1024) * 2**20)
    monkeypatch.setattr(environment, "unsupported_reason", lambda models: case.get("obstacle", ""))
    choice = model_servers.choose(load(**case.get("settings", {})), case.get("running", ()))
    assert [server.name for server in choice.chosen] == case["started"]
    assert choice.left_out.keys() == {"judge", "embedding"} - {*case["started"]}
    said = "\n".join(f"no {name}: {reason}" for name, reason in choice.left_out.items())
    for words in case.get("said", []):
        assert words in said
    assert choice.warnings == case.get("warned", [])


def test_install_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An environment that cannot be made leaves servers out that are `auto`, and is an error where one is `on`."""

    def fail(models: environment.Models) -> None:
        raise StackError("pip install failed")

    monkeypatch.setattr(environment, "make", fail)
    assert model_servers.install([JUDGE, EMBEDDING], load()) == []
    assert "no judge and no embedding: pip install failed" in capsys.readouterr().out
    with pytest.raises(StackError, match="pip install failed"):
        model_servers.install([JUDGE, EMBEDDING], load(EMBEDDING="on"))


@pytest.mark.parametrize(
    ("written", "started", "expected"),
    [
        ("", True, "http://localhost:8000"),
        ("", False, ""),
        ("http://localhost:8000", True, "http://localhost:8000"),
        ("http://localhost:8000", False, ""),
        ("http://127.0.0.1:8000/", False, ""),
        ("http://node-7:8000,http://node-8:8000", False, "http://node-7:8000,http://node-8:8000"),
        ("http://node-7:8000", True, "http://localhost:8000"),
        ("http://localhost:9000", False, "http://localhost:9000"),
    ],
)
def test_address(written: str, started: bool, expected: str) -> None:
    """Clients get the stack's own judge if it has one, else an external one; its own address is not external."""
    chosen = [JUDGE] if started else []
    urls = model_servers.urls(load(LLM_JUDGE_SERVER_URL=written), chosen)
    assert urls.get(JUDGE.url_setting, "") == expected
