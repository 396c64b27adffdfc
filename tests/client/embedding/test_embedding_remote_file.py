"""`embedding_remote.py`: the similarity as a file that a trainer loads by path."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import rewardstack.embedding_remote
from tests.support.servers import FaultServer


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A copy of the file in another directory, loaded by its path alone, as verl does."""
    path = tmp_path / "my_rewards.py"
    path.write_text(Path(rewardstack.embedding_remote.__file__).read_text())
    spec = importlib.util.spec_from_file_location("custom_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_data_source_is_ignored(server: FaultServer, module: Any) -> None:
    """Being one service, it scores whatever the `data_source` says, or where there is none."""
    assert 1.0 == pytest.approx(module.compute_score("no/route", "abc", "cab", None))
    assert 1.0 == pytest.approx(module.compute_score(solution_str="abc", ground_truth=["x", "cab"]))
    batch = module.compute_score_batched(["no", "route"], ["a", "b"], ["a", "c"], [{}, None])
    assert [1.0, 0.5] == pytest.approx(batch)
    assert [1.0, 0.5] == pytest.approx(
        module.compute_score(data_sources=["a", "b"], solution_strs=["a", "b"], ground_truths=["a", "c"])
    )


def test_each_with_its_own(server: FaultServer, module: Any) -> None:
    """In a batch each response is compared with its own references, under its own options."""
    extras = [{"length_penalty": "ratio"}, None]
    assert [0.25, 1.0] == pytest.approx(module.compute_score_batched("x", ["a", "b"], ["a a a a", "b b b b"], extras))
