"""`rewardstack submit` where its key has as much as it may."""

from __future__ import annotations

from pathlib import Path

import requests

from tests.cli.conftest import Cli
from tests.cli.samples import write_jsonl
from tests.jobs.conftest import sample, site


def test_submit_waits_for_its_turn(needs_redis: None, tmp_path: Path) -> None:
    """It says which limit it waits for, and submits once another job of its key has ended."""
    with site(tmp_path, REWARD_KEY_OPEN_JOBS=1) as here:
        before = here.submit(sample(0))
        write_jsonl(tmp_path / "in.jsonl", [sample(0), sample(1)])
        process = Cli(tmp_path, {"REWARD_SERVER_URL": here.server.url}).start("submit", "in.jsonl")
        try:
            assert process.stderr is not None
            assert "429: REWARD_KEY_OPEN_JOBS" in process.stderr.readline()
            requests.delete(f"{here.server.url}/jobs/{before}", timeout=60)
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()

        assert (process.returncode, here.state(printed.strip())["items"]) == (0, 2)
