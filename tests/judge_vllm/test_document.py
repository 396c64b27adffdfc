"""`docs/judge.md` holds: its snippets run against a real judge as printed, but for addresses and model names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rewardstack.routing.routes import RouteTable, builtin_routes
from rewardstack.scorers.judge.templates import BUILTIN
from rewardstack.scorers.names import JUDGE_FIELDS
from services.judge.run_vllm_server import parse
from services.stack.rundir import ROOT
from services.stack.settings import load
from tests.support.snippets import block, blocks_of
from tests.support.vllm import VllmServer

TEXT = (ROOT / "docs" / "judge.md").read_text()
BLOCKS = blocks_of("docs/judge.md")
PYTHON = [body for language, body in BLOCKS if language == "python"]
LAUNCH = [body for language, body in BLOCKS if language == "bash" and "run_vllm" in body]
LAUNCH.append(block("docs/install.md", "bash", "python services/judge"))
BASH = [body for language, body in BLOCKS if language == "bash" and "run_vllm" not in body and "make" not in body]
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
ADDRESS = re.compile(r"http://[\w.-]+:8000")
MODEL = re.compile(r"Qwen/Qwen3-32B|specialized-math-model")


def mapped(code: str, vllm: VllmServer) -> str:
    """The snippet with this judge's address and model, and fewer samples where it takes hundreds."""
    here = MODEL.sub(vllm.model.name, ADDRESS.sub(vllm.url, code))
    return here.replace("_integration.py", "_integration.py --samples 8 --injections 8")


def environment(vllm: VllmServer) -> dict[str, str]:
    """Where `python` and `rewardstack` are those of the test, and the judge is this one."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    packages = os.pathsep.join(str(ROOT / part) for part in ("client", "cli", "verifier", "services/rules"))
    return {**os.environ, "PATH": path, "PYTHONPATH": packages, "LLM_JUDGE_SERVER_URL": vllm.url}


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python(code: str, vllm: VllmServer, tmp_path: Path) -> None:
    """Each block of Python runs by itself, and prints what its comments say."""
    command = [sys.executable, "-W", "error", "-c", mapped(code, vllm)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(vllm), capture_output=True, text=True, timeout=200, check=False
    )

    assert done.returncode == 0, done.stderr
    assert PRINTED.findall(code) == done.stdout.splitlines()


@pytest.mark.parametrize("code", BASH, ids=range(len(BASH)))
def test_bash(code: str, vllm: VllmServer) -> None:
    """Each block of commands succeeds in a shell at the root of the tree."""
    command = ["bash", "-euc", mapped(code, vllm)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(vllm), capture_output=True, text=True, timeout=280, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("code", LAUNCH, ids=range(len(LAUNCH)))
def test_launch(code: str) -> None:
    """The commands that start a judge name scripts that are there, with flags that they know."""
    folder = ROOT
    for words in map(shlex.split, code.splitlines()):
        if words[0] == "cd":
            folder = ROOT / words[1]
        elif words[0] == "python":
            assert (folder / words[1]).is_file()
            wanted, options = parse(words[2:], load(ROOT, {}), {})
            assert (wanted.model, wanted.port, options["JUDGE_VLLM_ARGS"]) == (words[3], 8000, "")
        else:
            assert os.access(folder / words[0], os.X_OK)


def test_configuration() -> None:
    """The trainer's configuration names a file that has the function."""
    [(file, name)] = re.findall(r"path: (\S+)\n +name: (\w+)", TEXT)

    assert f"def {name}(" in (ROOT / file).read_text()


def test_data_source() -> None:
    """The name in the trainer's data is one that the judge's route takes."""
    named = yaml.safe_load(block("docs/judge.md", "yaml", "data_source"))["data_source"]

    assert RouteTable(builtin_routes()).find(named).name == "llm_judge_remote"


def test_tables() -> None:
    """Every option and every built-in template stands in a table."""
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    common = {"target_gt", "filter_gt_by_prompt_token", "server_url", "api_key", "timeout"}
    assert {*JUDGE_FIELDS, *BUILTIN, *common} <= named


def test_files() -> None:
    """Every script and document that it names is there."""
    names = set(re.findall(r"\w[\w/]*\.(?:py|sh|md|json)\b", TEXT))
    folders = ["", "services/judge/", "tests/", "docs/", "client/rewardstack/"]

    assert [] == [name for name in names if not any((ROOT / folder / name).exists() for folder in folders)]
