"""The examples of `docs/routing.md`, run as they are printed, against a real reward server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rewardstack.routing.routes import RULES
from rewardstack.routing.syntax import load_routes
from tests.rules.conftest import RewardServer, clean_environment, running
from tests.support.servers import FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "routing.md").read_text()
FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JUDGES = re.compile(r"http://localhost:(800[01])")
"""Where the document has its judges."""
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


class Block(NamedTuple):
    """One code block: its language, the file it is to be written to, its text."""

    language: str
    file: str
    text: str


def sections() -> dict[str, list[Block]]:
    """The code blocks under each heading that has any."""
    parts = re.split(r"^## (.*)\n", DOCUMENT, flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = {heading: [Block(*match) for match in FENCE.findall(body)] for heading, body in bodies.items()}
    return {heading: blocks for heading, blocks in found.items() if blocks}


@pytest.fixture(scope="module")
def reward_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A real reward server with the functions that it comes with."""
    with running(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture(scope="module")
def judge() -> Iterator[FaultServer]:
    """A server for the judges that the document names, each below an address of its own."""
    one = FaultServer(script=ROOT / "tests" / "client" / "judge" / "fake_judge.py")
    one.set(content="REWARD: 1.000", chances={"1": 0.9, "0": 0.1})
    yield one
    one.kill()


@pytest.mark.parametrize("heading", sections())
def test_examples(heading: str, reward_server: RewardServer, judge: FaultServer, tmp_path: Path) -> None:
    """Files, commands and code of a section, taken in their order, print what the comments say; they warn of nothing
    but samples that are unscored."""
    python = f"timeout 50 '{sys.executable}' -W error"
    script = ["set -eu"]
    for block in sections()[heading]:
        if block.file:
            (tmp_path / block.file).write_text(JUDGES.sub(rf"{judge.url}/judges/\1", block.text))
        elif block.language == "python":
            script.append(f"{python} - <<'END_OF_PYTHON'\n{block.text}END_OF_PYTHON")
        else:
            script.append(block.text)
    environment = clean_environment(PYTHONPATH=ROOT / "client", REWARD_SERVER_URL=reward_server.url)
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert 0 == done.returncode, done.stderr
    assert all("samples are unscored; the first: " in line for line in done.stderr.splitlines()), done.stderr
    assert [text for block in sections()[heading] for text in PRINTED.findall(block.text)] == done.stdout.splitlines()


def test_every_print_is_checked() -> None:
    """No `print` of the document goes without its comment, and each language is one that the test runs."""
    blocks = [block for blocks in sections().values() for block in blocks]
    assert {"python", "bash", "toml", "json"} == {block.language for block in blocks}
    assert sum(block.text.count("print(") for block in blocks) == sum(
        len(PRINTED.findall(block.text)) for block in blocks
    )


def test_files_say_the_same(tmp_path: Path) -> None:
    """The document's JSON means what its TOML does."""
    loaded = {}
    for block in sections()["Routes of one's own"]:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
            loaded[block.language] = load_routes(os.fspath(tmp_path / block.file))
    assert loaded["toml"] == loaded["json"]


def test_builtin_routes_are_named() -> None:
    """The document names every built-in route."""
    assert [] == [name for name in RULES if f"`{name}`" not in DOCUMENT]
