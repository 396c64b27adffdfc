"""`docs/rules.md` holds: its function loads, its commands work as printed, its tables name what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from rewardstack.routing.routes import RULES
from rewardstack_rules.http.openapi import OPERATIONS
from tests.rules.conftest import ROOT, RewardServer, clean_environment, running
from tests.support.servers import free_port
from tests.support.snippets import Snippet, blocks_of, snippets, staying
from tests.support.table import Table

pytestmark = pytest.mark.usefixtures("needs_process")

TEXT = (ROOT / "docs" / "rules.md").read_text()
BLOCKS = blocks_of("docs/rules.md")
STARTS = [one for one in snippets() if "python -m rewardstack_rules.run_reward_server" in one.text]
"""Also those of services/rules/README.md."""
CURLS = [(body, BLOCKS[at + 1 :][:1]) for at, (language, body) in enumerate(BLOCKS) if body.startswith("curl")]


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with the function of the document."""
    folder = tmp_path_factory.mktemp("documented")
    write_function(folder)
    with running(folder, "--workers", "2", REWARD_FUNCTIONS=folder / "my_rewards.py") as server:
        yield server


def write_function(folder: Path) -> None:
    """Writes the document's function to the file that it names."""
    [function] = [body for language, body in BLOCKS if language == "python"]
    (folder / "my_rewards.py").write_text(function)


@pytest.mark.parametrize("snippet", STARTS, ids=[f"{one.page}:{one.line}" for one in STARTS])
def test_start(snippet: Snippet, tmp_path: Path) -> None:
    """The commands that start a server start one, which says that it is ready as the document says it does."""
    write_function(tmp_path)
    port = free_port()
    command = snippet.text.replace("--port 6000", f"--port {port}")
    with staying(command, "Running on", tmp_path / "log", tmp_path, environment()):
        rules = requests.get(f"http://127.0.0.1:{port}/v1/reward_types", timeout=60).json()
    assert ("mentions" in json.dumps(rules)) == ("REWARD_FUNCTIONS" in command)


def test_curl(needs_curl: None, documented: RewardServer, table: Table) -> None:
    """Each command works as printed, and answers what is printed below it."""
    for place, (command, reply) in enumerate(CURLS):
        with table.case(f"{place}: {command.splitlines()[0]}"):
            here = command.replace("http://localhost:6000", documented.url)
            done = subprocess.run(["bash", "-c", here], capture_output=True, text=True, check=True)

            if reply and reply[0][0] == "json":
                assert_within(json.loads(reply[0][1]), json.loads(done.stdout))
            else:
                assert "rewardstack_requests_total" in done.stdout


def assert_within(expected: Any, actual: Any) -> None:
    """Everything printed is in the answer; an answer's further keys are left to the text."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_within(value, actual[key])
    elif isinstance(expected, list) and len(expected) == len(actual):
        for one, other in zip(expected, actual, strict=True):
            assert_within(one, other)
    else:
        assert expected == actual


def test_every_endpoint(documented: RewardServer) -> None:
    """Each endpoint has a command, but for the page; those of jobs have theirs in `docs/jobs.md`."""
    paths = {path for command, _ in CURLS for path in re.findall(r"localhost:6000(/[\w/.]+)", command)}

    known = {operation.path for operation in OPERATIONS}
    assert paths == {path for path in known if not path.startswith("/jobs")} - {"/", "/health"}


def test_table_of_rules() -> None:
    """Every built-in reward function has its row."""
    rows = {name for line in TEXT.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}

    assert set() == set(RULES) - rows


def test_start_script(needs_curl: None, tmp_path: Path) -> None:
    """The original's start script, with the module's path changed, finds the server started."""
    script = (ROOT / "tests" / "cases" / "start_remote_rm.sh").read_text()
    wait = "until grep -q 'Running on' $OUTPUT_DIR/reward_server.log; do sleep 0.1; done"  # in place of 20 s
    assert "sleep $TIMEOUT" in script
    dataset = tmp_path / "math_verify_dataset" / "mathvl_345_example.json"
    dataset.parent.mkdir()
    dataset.write_text('[{"question": "6 * 7", "answer": "42"}]')
    check = (
        "curl -s localhost:$REWARD_PORT/get_reward -H 'Content-Type: application/json' "
        """-d '{"prompts": ["6 * 7"], "responses": ["<think>easy</think><answer>$42$</answer>"]}'"""
        "\nkill $REWARD_SERVER_PID\nwait $REWARD_SERVER_PID\n"
    )
    here = script.replace("REWARD_PORT=6000", f"REWARD_PORT={free_port()}").replace("sleep $TIMEOUT", wait) + check

    done = subprocess.run(["bash", "-c", here], cwd=tmp_path, env=environment(), capture_output=True, text=True)

    assert "Reward server started successfully." in done.stdout, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"rewards": [1.5], "statuses": ["ok"]}


def environment() -> dict[str, str]:
    """Where `python` is this one, and finds the packages from any directory."""
    sources = [str(Path(part).resolve()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return clean_environment(PYTHONPATH=os.pathsep.join(sources), PATH=path)
