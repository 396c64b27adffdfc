"""The directory that the processes of a server count in."""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client import generate_latest

from rewardstack_rules.metrics.directory import make_metrics_dir
from rewardstack_rules.metrics.files import merge_ended
from rewardstack_rules.metrics.scrape import counts_registry


def test_left_behind(tmp_path: Path) -> None:
    """What a killed server left is removed by the next one; what is in use stays."""
    used = Path(make_metrics_dir(str(tmp_path)))
    killed = os.fork()
    if killed == 0:
        make_metrics_dir(str(tmp_path))
        os._exit(0)
    os.waitpid(killed, 0)
    assert len(list(tmp_path.iterdir())) == 2

    new = Path(make_metrics_dir(str(tmp_path)))
    assert set(tmp_path.iterdir()) == {used, new}


def test_process_that_is_starting(tmp_path: Path) -> None:
    """A process whose file is still empty breaks neither a scrape nor the counts of those that have ended."""
    (tmp_path / "counter_4000000.db").touch()

    merge_ended(tmp_path, pid=4000000)
    with counts_registry(str(tmp_path)) as registry:
        assert generate_latest(registry) == b""
