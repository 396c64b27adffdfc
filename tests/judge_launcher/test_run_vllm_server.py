"""`run_vllm_server.py` from start to end, with a stub in vLLM's place: tests of the judge use a real one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from services.stack.settings import SETTINGS
from tests.support.servers import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "services/judge/run_vllm_server.py"
STUB = Path(__file__).with_name("stub")
OWN = ("MODEL_ID", "PORT", "DTYPE", "MAX_MODEL_LEN", "GPU_MEMORY_UTILIZATION", *SETTINGS)


class Launched:
    """The script, running.

    Args:
        folder: its working directory, and where its temporary files go.
        arguments: beside the port.
        environment: beside that of the tests.
    """

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.port = free_port()
        clean = {name: value for name, value in os.environ.items() if name not in OWN}
        (folder / "tmp").mkdir()
        own = {"PYTHONPATH": str(STUB), "TMPDIR": str(folder / "tmp"), "PATH": os.environ["PATH"], **environment}
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--port", str(self.port), *arguments],
            cwd=folder,
            env={**clean, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # What runs tests in the background may have Ctrl-C ignored, which children inherit.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        self.said = ""

    def until(self, words: str) -> str:
        """Read what it says until a line holds these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if words in line:
                return line
        raise AssertionError(self.said)

    def end(self) -> tuple[int, str]:
        """Wait for its end; returns its exit status and all that it said."""
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            self.said += stdout.read()
        return self.process.wait(), self.said

    def ask(self) -> dict[str, Any]:
        """What a replica tells of itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=60) as reply:
            return dict(json.loads(reply.read()))

    def stop(self) -> tuple[int, str]:
        """Stop it as a user does."""
        self.process.send_signal(signal.SIGINT)
        return self.end()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory for one script; nothing that was started there may be left at the end."""
    yield tmp_path
    assert left_in(tmp_path) == []


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A folder that could hold a model."""
    (tmp_path / "model").mkdir()
    return "model"


def left_in(folder: Path) -> list[psutil.Process]:
    """The processes that were started with a folder for temporary files."""
    return [process for process in psutil.process_iter() if temporary(process) == str(folder / "tmp")]


def temporary(process: psutil.Process) -> str:
    """Where a process puts temporary files; empty where that cannot be read."""
    try:
        return process.environ().get("TMPDIR", "")
    except psutil.Error:
        return ""


def test_one(folder: Path, model: str) -> None:
    """One replica listens itself; unknown flags are passed on; the addresses are printed; Ctrl-C leaves no process."""
    launched = Launched(folder, "--model", model, "--max_num_seqs", "7", "--seed", "3", HF_TOKEN="hub")
    launched.until("up and serves model")
    assert f"export LLM_JUDGE_SERVER_URL=http://localhost:{launched.port}" in launched.until("export")
    told = launched.ask()
    serve = told["arguments"]
    assert serve[:2] == ["serve", str(folder / "model")]
    flags = {name: serve[serve.index(name) + 1] for name in ("--max-num-seqs", "--seed", "--served-model-name")}
    assert flags == {"--max-num-seqs": "7", "--seed": "3", "--served-model-name": "model"}
    assert Path(serve[serve.index("--config") + 1]).read_text().endswith('kwargs: {"enable_thinking": false}\n')
    assert (told["environment"]["HF_TOKEN"], told["environment"]["HF_HUB_OFFLINE"]) == ("hub", "1")
    assert len(left_in(folder)) == 3
    status, said = launched.stop()
    assert (status, re.findall(r"LLM_JUDGE_SERVER_URL=http://[^l][^:]*:\d+", said) != []) == (0, True)
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.nightly
@pytest.mark.usefixtures("needs_nginx")
def test_replicas(folder: Path, model: str) -> None:
    """Several replicas stand behind one address; the key reaches them and no command line; one that dies comes back."""
    launched = Launched(folder, "--model", model, "--replicas", "2", LLM_JUDGE_SERVER_API_KEY="secret-key")
    launched.until("up and serves model")
    told = [launched.ask() for _ in range(4)]
    pids = {tell["pid"] for tell in told}
    assert len(pids) == 2
    assert {tell["environment"]["VLLM_API_KEY"] for tell in told} == {"secret-key"}
    assert "secret-key" not in str([process.cmdline() for process in left_in(folder)])
    os.kill(min(pids), signal.SIGKILL)
    eventually(lambda: len({launched.ask()["pid"] for _ in range(4)} - {min(pids)}) == 2)
    launched.process.send_signal(signal.SIGTERM)
    status, said = launched.end()
    assert (status, "secret-key" in said) == (0, False)


@pytest.mark.usefixtures("needs_nginx")
@pytest.mark.parametrize(("replicas", "logs"), [(1, []), (2, ["judge-2.log", "judge.log"])])
def test_dies(folder: Path, model: str, replicas: int, logs: list[str]) -> None:
    """A vLLM that dies while it loads ends the script at once, with what it said last; the logs of several stay."""
    status, said = Launched(folder, "--model", model, "--replicas", str(replicas), STUB_VLLM="die").end()
    assert (status, "the stub is out of memory" in said) == (1, True)
    assert re.search("ERROR: judge(-2)?: exited during startup", said)
    left = {path.name for path in (folder / "tmp").glob("judge-*/logs/*")}
    assert sorted(name for name in left if name.startswith("judge")) == logs


def test_never_healthy(folder: Path, model: str) -> None:
    """One that never answers ends it after MODEL_UP_TIMEOUT seconds, and leaves no process."""
    status, said = Launched(folder, "--model", model, STUB_VLLM="hang", MODEL_UP_TIMEOUT="2").end()  # expires
    assert (status, "not healthy after 2 s (MODEL_UP_TIMEOUT)" in said) == (1, True)


def test_stopped_while_loading(folder: Path, model: str) -> None:
    """Ctrl-C while a model loads leaves no process either."""
    launched = Launched(folder, "--model", model, STUB_VLLM="hang")
    launched.until("loading model")
    assert launched.stop()[0] == 0


def test_port_taken(folder: Path, model: str) -> None:
    """A port that is taken is named before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        status, said = Launched(folder, "--model", model, "--port", str(taken)).end()
    assert (status, f"--port: port {taken} is taken by" in said) == (1, True)


def test_not_installed(folder: Path, model: str) -> None:
    """Without vLLM, and nobody to ask, it says what to do rather than install gigabytes."""
    launched = Launched(folder, "--model", model, PYTHONPATH="", MODELS_DIR=str(folder / "none"))
    status, said = launched.end()
    assert (status, "ERROR: vLLM is not installed here" in said, "--yes" in said) == (1, True, True)
    assert not (folder / "none").exists()
