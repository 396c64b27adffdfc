"""Blocks of the pages that no other test runs, as they are printed: commands, with a real reward server, and Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Cli, RewardServer
from tests.support.snippets import Snippet, assert_shown, snippets

HERE = [(one, row["here"]) for one in snippets() if (row := one.row()) is not None and "here" in row]
COMMANDS = [one for one, how in HERE if how == "commands"]
PYTHON = [one for one, how in HERE if how == "python"]
PLANNED = [one for one, how in HERE if how == "make -n"]
PRINTED = [(before, one) for before, one in pairwise(snippets()) if (one, "printed") in HERE]
INSTALLED = [one for one, how in HERE if how == "pip"]


def name(snippet: Snippet) -> str:
    return f"{snippet.page}:{snippet.line}"


@pytest.fixture
def reader(scoring: Cli, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has a reward server, some rollouts, the examples and Align-Anything."""
    (tmp_path / "align-anything/align_anything/models/remote_rm").mkdir(parents=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "examples" / "samples.jsonl", tmp_path / "rollouts.jsonl")
    folder = str(Path(sys.executable).parent)
    return {**scoring.environment(), "PATH": os.pathsep.join([folder, os.environ["PATH"]])}


def run(command: list[str], cwd: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("snippet", COMMANDS, ids=name)
def test_commands(snippet: Snippet, reward_server: RewardServer, reader: dict[str, str], tmp_path: Path) -> None:
    """Commands succeed, one after the other, where the address is that of the test's own server."""
    here = snippet.text.replace("http://localhost:6000", reward_server.url)
    run(["bash", "-euc", here], tmp_path, reader)


@pytest.mark.parametrize(("commands", "printed"), PRINTED, ids=[name(one) for _, one in PRINTED])
def test_printed(commands: Snippet, printed: Snippet, reader: dict[str, str], tmp_path: Path) -> None:
    """What stands below commands is what they print, or a part of it, but for addresses and figures."""
    assert_shown(printed.text, run(["bash", "-euc", commands.text], tmp_path, reader))


@pytest.mark.parametrize("snippet", PYTHON, ids=name)
def test_python(snippet: Snippet, reader: dict[str, str], tmp_path: Path) -> None:
    """Python runs without a warning."""
    run([sys.executable, "-W", "error", "-c", snippet.text], tmp_path, reader)


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("snippet", PLANNED, ids=name)
def test_make(snippet: Snippet) -> None:
    """Commands whose `make` is told to print alone what it would do: the targets are there, and take what is given."""
    lines = [line.partition(" #")[0] for line in snippet.text.splitlines()]
    here = re.sub(r"\bmake\b", "make --dry-run", "\n".join(lines))
    run(["bash", "-euc", here], ROOT, dict(os.environ))


@pytest.mark.parametrize("snippet", INSTALLED, ids=name)
def test_install(snippet: Snippet) -> None:
    """What is installed by its path is there, with the extras that are named."""
    [installed] = re.findall(r"^pip install (.*)$", snippet.text, re.MULTILINE)
    for folder, extras in re.findall(r"(\./[\w/]+)(?:\[(\S+)\])?", installed):
        package = (ROOT / folder / "pyproject.toml").read_text()
        [project] = re.findall(r'^name = "(.*)"$', package, re.MULTILINE)
        assert set(filter(None, extras.split(","))) <= set(metadata(project).get_all("Provides-Extra", []))
