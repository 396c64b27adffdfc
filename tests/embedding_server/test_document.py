"""`docs/embedding.md` holds of a real server: its commands work as printed, and print what stands below them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embedding_server.served import ROOT, EmbeddingServer
from tests.rules.conftest import clean_environment
from tests.support.servers import free_port
from tests.support.snippets import assert_shown, block, snippets, staying

PAGE = "docs/embedding.md"


def environment() -> dict[str, str]:
    """Where `python` and `rewardstack` are those of the test, and no hub is asked for a model."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    packages = os.pathsep.join(str(ROOT / part) for part in ("client", "cli", "verifier", "services/rules"))
    return clean_environment(PATH=path, PYTHONPATH=packages, HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")


def printed(begins: str, url: str) -> str:
    """What the commands that begin so print of a server, run at the root of the tree."""
    commands = block(PAGE, "bash", begins).replace("http://localhost:8080", url)
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_start(python: str, tmp_path: Path) -> None:
    """The server starts by the command that is given, and says so."""
    port = str(free_port())
    commands = block(PAGE, "bash", "cd services/embedding").replace("8080", port)
    with staying(commands, "Ready: export EMBEDDING_SERVER_URL=", tmp_path / "log", ROOT, environment()):
        pass


def test_launchers(needs_process: None) -> None:
    """README.md of the launchers starts the server in Python as the page does, and TEI by a script that takes it."""
    [text] = [one.text for one in snippets() if one.page == "services/embedding/README.md"]
    in_python, container = text.splitlines()
    assert in_python in block(PAGE, "bash", "cd services/embedding").splitlines()
    done = subprocess.run(
        ["bash", "-euc", f"{container} --dry-run"],
        cwd=ROOT / "services/embedding",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--model-id Qwen/Qwen3-Embedding-8B" in done.stdout


@pytest.mark.parametrize("begins", ["export EMBEDDING_SERVER_URL", "curl"])
def test_commands(needs_curl: None, server: EmbeddingServer, begins: str) -> None:
    """The server is found to work, and tells its health, its model and its counts."""
    assert printed(begins, server.url)


def test_connectivity(server: EmbeddingServer) -> None:
    """The script finds every check to pass, and prints what the page shows."""
    assert_shown(block(PAGE, "", "ok      health"), printed("python tests/test_server_connectivity.py", server.url))
