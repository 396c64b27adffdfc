"""`rewardstack.trainers.verl_groups` without verl; tests/trainers/running_verl.py has both."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from rewardstack.errors import RequestError, ScoringError, SettingsError
from tests.client.trainers.conftest import loaded

NAIVE = "verl.experimental.reward_loop.reward_manager.naive"


class Naive:
    """What is used of verl's `NaiveRewardManager`."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
        self.compute_score = compute_score

    async def run_single(self, data: Any) -> Any:
        return {"reward_score": 0.0, "reward_extra_info": self.compute_score(data[0].non_tensor_batch["extra_info"])}


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
    return loaded(monkeypatch, "verl_groups", {NAIVE: {"NaiveRewardManager": Naive}})


class Section(SimpleNamespace):
    """A section of verl's configuration."""

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def made(module: Any, use_v1: bool = True, **reward: Any) -> Any:
    """A manager whose details are the `extra_info` that it would score."""
    config = Section(reward=Section(**{"num_workers": 1, **reward}), trainer=Section(use_v1=use_v1))
    return module.RewardManager(config, "tokenizer", compute_score=lambda extra: extra)


def scored(manager: Any, data: Data) -> Any:
    """The details of a sample."""
    return asyncio.run(manager.run_single(data))["reward_extra_info"]


def test_fields(module: Any) -> None:
    """The last sequence gets its group and its tokens; its own fields take precedence, and the data are unchanged."""
    rows = {"uid": ["x", "y"], "extra_info": [{"completion_tokens": 9}, {"question": "?"}]}
    columns = {name: numpy.array(values, dtype=object) for name, values in rows.items()}
    data = Data(numpy.array([[1, 1, 1, 1, 1], [0, 1, 1, 1, 0]]), columns)
    found = scored(made(module), data)
    assert {"question": "?", "group_id": "y", "completion_tokens": 2} == found
    assert {"question": "?"} == data.non_tensor_batch["extra_info"][1]
    assert {"completion_tokens": 9, "group_id": "x"} == scored(made(module), data[:1])
    without = Data(data.mask, {"extra_info": columns["extra_info"]})
    assert {"question": "?", "completion_tokens": 2} == scored(made(module), without)


def test_one_worker(module: Any) -> None:
    """With several workers the members of a group would not meet, which is refused by the setting's name."""
    with pytest.raises(SettingsError, match="reward.num_workers: is 8, .* set reward.num_workers=1"):
        made(module, num_workers=8)


def test_mask_failed(module: Any) -> None:
    """A failed sample raises with `reward.mask_failed` alone, an unscored one never; verl then leaves it out."""
    mask = numpy.ones((1, 5))
    for status, masks in (("failed", True), ("failed", False), ("unscored", True)):
        details = {"failed": float(status == "failed")}
        data = Data(mask, {"extra_info": numpy.array([details], dtype=object)})
        manager = made(module, mask_failed=masks)
        if status == "failed" and masks:
            with pytest.raises(ScoringError, match="left out of the update"):
                scored(manager, data)
        else:
            assert details["failed"] == scored(manager, data)["failed"]


def test_mask_failed_needs(module: Any) -> None:
    """Masking is refused for a trainer that a raised error would end, and for a function without statuses."""
    with pytest.raises(SettingsError, match="reward.mask_failed: only verl's V1 trainer .* set trainer.use_v1=true"):
        made(module, use_v1=False, mask_failed=True)
    data = Data(numpy.ones((1, 5)), {"extra_info": numpy.array([{}], dtype=object)})
    with pytest.raises(RequestError, match="reward.mask_failed: .* no `failed`; use rewardstack.trainers.verl"):
        scored(made(module, mask_failed=True), data)
