"""Load trainers' modules with fake versions of the packages that they import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rewardstack.transport import timing


@pytest.fixture(autouse=True)
def no_hedges(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is sent a second time because the machine is slow."""
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)


def loaded(monkeypatch: pytest.MonkeyPatch, name: str, stand_ins: Mapping[str, Mapping[str, Any]]) -> Any:
    """Load `rewardstack.trainers.NAME` for this test; `stand_ins` has the attributes of each fake module by name."""
    for path, attributes in stand_ins.items():
        parts = path.split(".")
        for package in (".".join(parts[: at + 1]) for at in range(len(parts))):
            if not getattr(sys.modules.get(package), "is_stand_in", False):
                module = ModuleType(package)
                module.__dict__["is_stand_in"] = True
                monkeypatch.setitem(sys.modules, package, module)
        sys.modules[path].__dict__.update(attributes)
    own = f"rewardstack.trainers.{name}"
    monkeypatch.setitem(sys.modules, own, ModuleType(own))  # so that the import is undone at the end of the test
    del sys.modules[own]
    return importlib.import_module(own)


@pytest.fixture
def skyrl(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the module for SkyRL."""
    base = {"BaseTextEnv": type("BaseTextEnv", (), {}), "BaseTextEnvStepOutput": SimpleNamespace}
    return loaded(monkeypatch, "skyrl", {"skyrl_gym.envs.base_text_env": base})


class InspectScore(SimpleNamespace):
    """A fake of Inspect's `Score`; its value is None if it is unscored."""

    @classmethod
    def unscored(cls, **fields: Any) -> InspectScore:
        return cls(value=None, **fields)


@pytest.fixture
def inspect_ai(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the module for Inspect."""
    names = {name: lambda: None for name in ("Scorer", "Target", "mean", "stderr")}
    scorer = {**names, "Score": InspectScore, "scorer": lambda metrics: lambda function: function}
    return loaded(
        monkeypatch, "inspect_ai", {"inspect_ai.scorer": scorer, "inspect_ai.solver": {"TaskState": SimpleNamespace}}
    )
