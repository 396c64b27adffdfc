"""The directory that the processes of a server count in."""

from __future__ import annotations

import os
from pathlib import Path

from rewardstack_rules.metrics.directory import make_metrics_dir


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
