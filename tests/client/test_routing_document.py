"""The examples of `docs/routing.md`, run as they are printed, against a real reward server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardstack.routing.routes import RULES
from rewardstack.routing.syntax import load_routes
from tests.client.judge.conftest import FAKE_JUDGE
from tests.rules.conftest import RewardServer, running
from tests.support.examples import printed, run, sections
from tests.support.servers import FaultServer
from tests.support.snippets import ROOT

pytestmark = pytest.mark.usefixtures("needs_process")

DOCUMENT = (ROOT / "docs" / "routing.md").read_text()
SECTIONS = sections("routing.md")
JUDGES = re.compile(r"http://localhost:(800[01])")
"""Where the document has its judges."""


@pytest.fixture(scope="module")
def reward_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A real reward server with the functions that it comes with."""
    with running(tmp_path_factory.mktemp("server"), "--workers", "1") as one:
        yield one


@pytest.fixture(scope="module")
def judge() -> Iterator[FaultServer]:
    """A server for the judges that the document names, each below an address of its own."""
    one = FaultServer(script=FAKE_JUDGE)
    one.set(content="REWARD: 1.000", chances={"1": 0.9, "0": 0.1})
    yield one
    one.kill()


@pytest.mark.parametrize("heading", SECTIONS)
def test_examples(heading: str, reward_server: RewardServer, judge: FaultServer, tmp_path: Path) -> None:
    """Files, commands and code of a section, taken in their order, print what the comments say; they warn of nothing
    but samples that are unscored."""
    here = [block._replace(text=JUDGES.sub(rf"{judge.url}/judges/\1", block.text)) for block in SECTIONS[heading]]
    run(here, tmp_path, REWARD_SERVER_URL=reward_server.url)


def test_every_print_is_checked() -> None:
    """No `print` of the document goes without its comment, and each language is one that the test runs."""
    blocks = [block for blocks in SECTIONS.values() for block in blocks]
    assert {"python", "bash", "toml", "json"} == {block.language for block in blocks}
    assert sum(block.text.count("print(") for block in blocks) == len(printed(blocks))


def test_files_say_the_same(tmp_path: Path) -> None:
    """The document's JSON means what its TOML does."""
    loaded = {}
    for block in SECTIONS["Your own routes"]:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
            loaded[block.language] = load_routes(os.fspath(tmp_path / block.file))
    assert loaded["toml"] == loaded["json"]


def test_builtin_routes_are_named() -> None:
    """The document names every built-in route."""
    assert [] == [name for name in RULES if f"`{name}`" not in DOCUMENT]
