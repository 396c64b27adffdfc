"""`examples/align_anything/example_start_remote_rm.sh`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.conftest import ROOT, clean_environment
from tests.support.servers import free_port

pytestmark = pytest.mark.usefixtures("needs_process")

SCRIPT = ROOT / "examples/align_anything/example_start_remote_rm.sh"
ASK = """
source {script} || exit 1
curl -s "$REMOTE_RM_URL" -H 'Content-Type: application/json' -d '
  {{"prompts": ["6 * 7"], "responses": ["<think>easy</think><answer>$42$</answer>"]}}'
kill "$REWARD_SERVER_PID"
wait "$REWARD_SERVER_PID"
"""


def run(folder: Path, **variables: object) -> subprocess.CompletedProcess[str]:
    """Runs the script as its head says, asks the server, and stops it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = clean_environment(PATH=path, REWARD_PORT=free_port(), REWARD_WORKERS=1, **variables)
    command = ["bash", "-c", ASK.format(script=SCRIPT)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_it_starts_a_server(needs_curl: None, tmp_path: Path) -> None:
    """It waits until the server answers, with golden answers from the data set."""
    (tmp_path / "golden.json").write_text('[{"question": "6 * 7", "answer": "42"}]')

    done = run(tmp_path, DATASET_PATH="golden.json")

    assert "answers at http://127.0.0.1:" in done.stdout, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"rewards": [1.5], "statuses": ["ok"]}


@pytest.mark.nightly
def test_it_says_why_not(tmp_path: Path) -> None:
    """Where the server does not start it fails at once, with what the server's log says."""
    done = run(tmp_path, REWARD_TYPE="gsm9k")

    assert (done.returncode, "reward_type 'gsm9k' is not known" in done.stderr) == (1, True), done.stdout
