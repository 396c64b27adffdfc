"""A server that is busy is not taken for one that hangs."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rewardstack.routing.routes import RULE_PREFIX
from rewardstack_rules.process import NOT_READY
from tests.rules.conftest import clean_environment, running
from tests.support.waiting import eventually

HELD = """
import time
from pathlib import Path
from rewardstack_rules import reward_function

@reward_function
def held(response, reference=None):
    Path(response, "begun").touch()
    while Path(response, "hold").exists():
        time.sleep(0.05)
    return 1.0
"""


@pytest.mark.usefixtures("needs_process")
@pytest.mark.nightly
def test_all_threads_are_taken(tmp_path: Path) -> None:
    """Where every thread has a sample that takes long the server says that it lives, and that it is not ready."""
    (tmp_path / "held.py").write_text(HELD)
    (tmp_path / "hold").touch()
    item = {"data_source": f"{RULE_PREFIX}held", "solution_str": str(tmp_path), "ground_truth": "1"}
    settings = {"REWARD_FUNCTIONS": tmp_path / "held.py", "REWARD_THREADS": 1, "VERIFY_TIMEOUT": 300}
    with running(tmp_path, "--workers", "1", **settings) as server, ThreadPoolExecutor(2) as pool:
        scored = [pool.submit(server.score, item) for _ in range(2)]
        eventually((tmp_path / "begun").exists)

        assert server.get("/health").status_code == 200
        environment = clean_environment(REWARD_PORT=server.url.rpartition(":")[2])
        check = [sys.executable, "-m", "rewardstack_rules.http.healthcheck"]
        asked = subprocess.run(check, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert (asked.returncode, asked.stderr.startswith("/ready")) == (NOT_READY, True)
        assert not any(one.done() for one in scored)

        (tmp_path / "hold").unlink()
        assert [one.result()[0]["status"] for one in scored] == ["ok", "ok"]
