"""`RELOAD=on`: changed reward functions and routes are loaded while the reward server runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rewardstack_rules
from rewardstack_rules.scoring import reload
from tests.rules.conftest import RewardServer
from tests.support.waiting import eventually

MINE = {"data_source": "rule_remote_mine", "solution_str": "a"}
SOURCE = """\
from helper import VALUE
from rewardstack_rules import reward_function

@reward_function
def mine(response, reference=None):
    return {}
"""
Start = Callable[..., RewardServer]


def value(server: RewardServer, item: dict[str, Any] = MINE) -> Any:
    """Of one sample."""
    return server.score(item)[0]["value"]


def replace(path: Path, text: str) -> None:
    """Replace a file at once, so that nobody reads a part of it."""
    (new := path.with_suffix(".new")).write_text(text)
    new.rename(path)


@pytest.mark.nightly
def test_reward_functions(start: Start, tmp_path: Path) -> None:
    """A changed file, and a module beside it, are loaded; a broken one leaves the old in force and is logged once."""
    (helper := tmp_path / "helper.py").write_text("VALUE = 0.25\n")
    (mine := tmp_path / "mine.py").write_text(SOURCE.format("VALUE"))
    server = start("--workers", "1", REWARD_FUNCTIONS=mine, RELOAD="on")
    assert value(server) == 0.25

    replace(helper, "VALUE = 0.5\n")
    eventually(lambda: value(server) == 0.5, server.log.read_text)

    replace(mine, SOURCE.format("1 / 2 +"))
    eventually(lambda: "reload: " in server.log.read_text() and "mine.py" in server.log.read_text())
    assert value(server) == 0.5
    replace(mine, SOURCE.format("VALUE / 2"))
    eventually(lambda: value(server) == 0.25, server.log.read_text)
    assert server.log.read_text().count("stay active") == 1


def test_file_above_the_server(start: Start, tmp_path: Path) -> None:
    """A file in a folder that also contains the server's own modules is reloaded, and they are not."""
    (tmp_path / "rewardstack_rules").symlink_to(Path(rewardstack_rules.__file__).parent)
    (mine := tmp_path / "mine.py").write_text("VALUE = 0.25\n" + SOURCE.format("VALUE").partition("\n")[2])
    server = start("--workers", "1", REWARD_FUNCTIONS=mine, RELOAD="on", PYTHONPATH=tmp_path)
    assert value(server) == 0.25
    mine.write_text(mine.read_text().replace("0.25", "0.5"))
    eventually(lambda: value(server) == 0.5, server.log.read_text)


def test_routes(start: Start, tmp_path: Path) -> None:
    """A changed file of routes is loaded, and its routes score samples, also where `--workers` is not given."""
    (routes := tmp_path / "routes.json").write_text(json.dumps({"routes": {"own": "gsm8k"}}))
    server = start(REWARDSTACK_ROUTES=routes, RELOAD="on")
    added = {"data_source": "added", "solution_str": "#### 4", "ground_truth": "4"}
    assert "added" not in server.get("/v1/reward_types").text
    routes.write_text(json.dumps({"routes": {"added": "gsm8k"}}))

    def is_scored() -> bool:  # a worker with the old routes may answer while the workers are replaced
        reply = server.post("/v1/score", {"items": [added]})
        return bool(reply.status_code == 200 and reply.json()["scores"][0]["value"] == 1.0)

    eventually(is_scored, server.log.read_text)


def test_a_change_during_the_start(tmp_path: Path) -> None:
    """A file that changes between the first look at it and the server's own loading is reloaded."""
    (tmp_path / "helper.py").write_text("VALUE = 0.25\n")
    (mine := tmp_path / "mine.py").write_text(SOURCE.format("VALUE"))
    program = """
import os, pathlib, threading
from rewardstack_rules.scoring.reload import Reloader
from rewardstack_rules.settings import Settings
told = threading.Event()
reloader = Reloader(Settings.from_env(), told.set)
pathlib.Path(os.environ["REWARD_FUNCTIONS"]).with_name("helper.py").write_text("VALUE = 0.5 ")
reloader.start()
print(told.wait(60))
"""
    environment = {**os.environ, "REWARD_FUNCTIONS": str(mine), "RELOAD": "on"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout == "True\n", ran.stderr


def test_versions_of_files(tmp_path: Path) -> None:
    """A file that is missing for a moment, as while an editor replaces it, has no version."""
    (file := tmp_path / "a.py").write_text("1")
    before = reload._versions([file, tmp_path / "b.py"])
    assert [*before] == [file]
    file.write_text("22")
    assert reload._versions([file]) != before
