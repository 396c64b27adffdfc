"""`make up` with a real judge and a real embedding server behind the gateway."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.models.environment import Models
from services.up.summary import SAMPLES as SAMPLE_FILES
from tests.native.test_stack import pids, statuses, wait_for_another, wait_until_healthy, working_in
from tests.native.tree import ROOT, Tree

MODELS = Models(ROOT / os.environ.get("MODELS_DIR", ".models"))
SAMPLES = sum(len(SAMPLE_FILES[name].read_text().splitlines()) for name in ("rules", "judge", "embedding"))
LOADING_SECONDS = 400
KEY = "the-judges-own-key"
OUTSIDE = ("HOME", "TMPDIR")
ADDRESSES = {"LLM_JUDGE_SERVER_URL": "JUDGE_PORT", "EMBEDDING_SERVER_URL": "EMBEDDING_PORT"}

pytestmark = [
    pytest.mark.usefixtures("needs_stack", "needs_model"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """A running stack with both, a key for the judge, and a home and a folder for temporary files of its own."""
    folder = tmp_path_factory.mktemp("models")
    tree = Tree(folder / "tree", LOADING_SECONDS)
    for name in OUTSIDE:
        (folder / name).mkdir()
        tree.environment[name] = str(folder / name)
    tree.environment |= {
        "JUDGE": "on",
        "EMBEDDING": "on",
        "MODELS_DIR": str(MODELS.folder.resolve()),
        "LLM_JUDGE_SERVER_API_KEY": KEY,
        "LLM_JUDGE_SERVER_TIMEOUT": "120",
    }
    try:
        result = tree.run("up")
        assert result.returncode == 0, result.stdout
        assert statuses(result.stdout) == [("ok", "no")] * SAMPLES
        yield tree
    finally:
        tree.run("down")


def ask(stack: Tree, port: str, path: str, body: Any = None) -> Any:
    """What a service answers through the gateway."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://127.0.0.1:{stack.environment[port]}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        text = reply.read()
    return json.loads(text) if text else None


def test_second_up_is_cached(stack: Tree) -> None:
    """A second `make up` leaves the model servers alone; every row is cached; it prints both addresses, no key."""
    before = pids(stack, ("judge", "embedding"))
    urls = {name: f"http://localhost:{stack.environment[port]}" for name, port in ADDRESSES.items()}
    again = stack.run("up", **urls)
    assert (again.returncode, statuses(again.stdout)) == (0, [("ok", "yes")] * SAMPLES)
    assert pids(stack, ("judge", "embedding")) == before
    assert [f"export {name}={url}\n" in again.stdout for name, url in urls.items()] == [True, True]
    assert KEY not in again.stdout


def test_through_the_gateway(stack: Tree) -> None:
    """The judge answers under its own name with its key, the embedding server with vectors."""
    served = ask(stack, "JUDGE_PORT", "/v1/models")["data"][0]["id"]
    assert served == "SmolLM2-135M-Instruct"
    chat = {"model": served, "messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 4}
    usage = ask(stack, "JUDGE_PORT", "/v1/chat/completions", chat)["usage"]
    assert usage["completion_tokens"] == 4
    assert len(ask(stack, "EMBEDDING_PORT", "/embed", {"inputs": ["one", "two"]})) == 2


def test_key_is_on_no_command_line(stack: Tree) -> None:
    """The judge's key is on no command line, and in no file of the stack but its own."""
    lines = [Path(f"/proc/{process.pid}/cmdline").read_text() for process in working_in(stack)]
    assert len(lines) >= 7 and KEY not in "".join(lines)
    written = [path for path in (stack.path / ".run").rglob("*") if path.is_file()]
    found = [path.relative_to(stack.path) for path in written if KEY in path.read_text(errors="replace")]
    assert found == [Path(".run/secrets/llm_judge_server_api_key")]


def test_killed_judge_comes_back(stack: Tree) -> None:
    """A judge whose main process is killed is started again; what it left behind is ended."""
    wait_until_healthy(stack, LOADING_SECONDS)
    before = pids(stack, ("judge", "embedding"))
    os.kill(before["judge"], signal.SIGKILL)
    wait_for_another(stack, "judge", before["judge"], LOADING_SECONDS)
    assert pids(stack, ("embedding",))["embedding"] == before["embedding"]
    assert ask(stack, "JUDGE_PORT", "/v1/models")["data"]


def test_down_and_clean(stack: Tree) -> None:
    """`make down` leaves no process of theirs, `make clean` no file: not in the home, nor in the temporary folder."""
    assert stack.run("down").returncode == 0
    assert working_in(stack) == []
    assert list((stack.path / ".run/caches").rglob("*.json")), "what the next start is quicker by"
    assert stack.run("clean").returncode == 0
    left = [path for name in OUTSIDE for path in Path(stack.environment[name]).rglob("*")]
    assert (left, (stack.path / ".run").exists()) == ([], False)
