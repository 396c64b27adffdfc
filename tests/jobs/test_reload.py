"""`RELOAD=on`: a worker loads changed reward functions between chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.conftest import site
from tests.support.waiting import eventually

SOURCE = "from rewardstack_rules import reward_function\n\n@reward_function\ndef mine(response):\n    return {}\n"
MINE = {"data_source": "rule_remote_mine", "solution_str": "a"}


@pytest.mark.nightly
def test_worker(needs_redis: None, tmp_path: Path) -> None:
    """It takes the new function, stays one process, and keeps the old one where the new one is broken."""
    (mine := tmp_path / "mine.py").write_text(SOURCE.format(1))
    with site(tmp_path, REWARD_FUNCTIONS=mine, RELOAD="on", REWARD_CACHE="off") as here:
        worker = here.add_worker()

        def value() -> Any:
            job = here.submit(MINE)
            assert here.end_of(job)["status"] == "finished"
            return json.loads(here.server.get(f"/jobs/{job}/results").text.splitlines()[0])["value"]

        assert value() == 1.0
        mine.write_text(SOURCE.format(2))
        eventually(lambda: value() == 2.0, worker.log.read_text)
        mine.write_text(SOURCE.format("1 +"))
        eventually(lambda: "stay active" in worker.log.read_text(), worker.log.read_text)
        assert (value(), worker.process.poll()) == (2.0, None)
