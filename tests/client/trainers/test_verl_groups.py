"""`rewardstack.trainers.verl_groups` without verl; tests/trainers/running_verl.py has both."""

from __future__ import annotations

import asyncio
import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
import pytest

from rewardstack.errors import SettingsError

PACKAGES = ("verl", "experimental", "reward_loop", "reward_manager", "naive")


class Naive:
    """What is used of verl's `NaiveRewardManager`."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
        self.compute_score = compute_score

    async def run_single(self, data: Any) -> Any:
        return self.compute_score(data[0].non_tensor_batch["extra_info"])


class Data:
    """What is used of verl's `DataProto`, for responses of three tokens behind prompts of two."""

    def __init__(self, mask: Any, rows: dict[str, Any]) -> None:
        self.mask, self.non_tensor_batch = mask, rows

    def __getitem__(self, place: Any) -> Any:
        rows = {name: column[place] for name, column in self.non_tensor_batch.items()}
        if isinstance(place, slice):
            return Data(self.mask[place], rows)
        batch = {"attention_mask": self.mask[place], "responses": numpy.zeros(3)}
        return SimpleNamespace(batch=batch, non_tensor_batch=rows)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a stand-in for verl."""
    for at in range(len(PACKAGES)):
        name = ".".join(PACKAGES[: at + 1])
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules[".".join(PACKAGES)].NaiveRewardManager = Naive  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, "rewardstack.trainers.verl_groups", raising=False)
    yield importlib.import_module("rewardstack.trainers.verl_groups")
    sys.modules.pop("rewardstack.trainers.verl_groups", None)


def made(module: Any, workers: int = 1) -> Any:
    """A manager that returns what it would score."""
    config = SimpleNamespace(reward=SimpleNamespace(num_workers=workers))
    return module.RewardManager(config, "tokenizer", compute_score=lambda extra: extra)


def test_fields(module: Any) -> None:
    """The last sequence gets its group and its tokens; its own fields take precedence, and the data are unchanged."""
    rows = {"uid": ["x", "y"], "extra_info": [{"completion_tokens": 9}, {"question": "?"}]}
    columns = {name: numpy.array(values, dtype=object) for name, values in rows.items()}
    data = Data(numpy.array([[1, 1, 1, 1, 1], [0, 1, 1, 1, 0]]), columns)
    found = asyncio.run(made(module).run_single(data))
    assert {"question": "?", "group_id": "y", "completion_tokens": 2} == found
    assert {"question": "?"} == data.non_tensor_batch["extra_info"][1]
    assert {"completion_tokens": 9, "group_id": "x"} == asyncio.run(made(module).run_single(data[:1]))
    without = Data(data.mask, {"extra_info": columns["extra_info"]})
    assert {"question": "?", "completion_tokens": 2} == asyncio.run(made(module).run_single(without))


def test_one_worker(module: Any) -> None:
    """With several workers the members of a group would not meet, which is refused by the setting's name."""
    with pytest.raises(SettingsError, match="reward.num_workers: is 8, .* set reward.num_workers=1"):
        made(module, 8)
