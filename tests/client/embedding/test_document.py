"""`docs/embedding.md` holds: its Python runs as printed, its tables name what there is, its files are there."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rewardstack.scorers.embedding.penalties import PENALTIES
from rewardstack.scorers.names import EMBEDDING_FIELDS
from tests.support.servers import FaultServer
from tests.support.snippets import block, blocks_of

pytestmark = pytest.mark.usefixtures("needs_process")

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "embedding.md").read_text()
BLOCKS = blocks_of("docs/embedding.md")
PYTHON = [body for language, body in BLOCKS if language == "python"]
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python(code: str, server: FaultServer) -> None:
    """Each block runs with nothing but a server in the environment, and prints what its comments say."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "client"), str(ROOT / "verifier")])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert 0 == done.returncode, done.stderr
    assert PRINTED.findall(code) == done.stdout.splitlines()


def test_by_path(server: FaultServer) -> None:
    """The file that the trainer's configuration names has a function of that name, which scores."""
    named = yaml.safe_load(block("docs/embedding.md", "yaml", "custom_reward_function"))["custom_reward_function"]
    function = runpy.run_path(str(ROOT / named["path"]))[named["name"]]
    assert 1.0 == pytest.approx(function("any source", "abc", "cab", None))


def test_key(server: FaultServer) -> None:
    """A server that wants a key is found to work with the variables that are exported, and not without the key's."""
    server.set(key="your-secure-key")
    key, address = (
        block("docs/embedding.md", "bash", f"export EMBEDDING_SERVER_{name}") for name in ("API_KEY", "URL")
    )
    check = address.replace("http://localhost:8080", server.url)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = [
        subprocess.run(["bash", "-euc", commands], env={**os.environ, "PATH": path}, capture_output=True, check=False)
        for commands in (key + check, check)
    ]
    assert [0, 1] == [one.returncode for one in done], done[0].stderr


def test_options() -> None:
    """Every option stands in the table."""
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {*EMBEDDING_FIELDS, *PENALTIES, "target_gt", "filter_gt_by_prompt_token", "prompt", "server_url"} <= named


def test_files() -> None:
    """Every script and document that it names is there, but for the original's own place in verl."""
    scripts = set(re.findall(r"[\w/]*\w+\.(?:py|sh|md)\b", TEXT)) - {"verl/utils/reward_score/embedding_remote.py"}
    folders = ["", "docs/", "services/embedding/", "tests/", "benchmarks/", "client/rewardstack/"]
    assert [] == [name for name in scripts if not any((ROOT / folder / name).exists() for folder in folders)]
