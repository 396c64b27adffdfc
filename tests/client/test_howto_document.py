"""The tasks of `docs/howto.md`, done as they are printed, against a real reward server and a scripted judge."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.judge.conftest import FAKE_JUDGE
from tests.rules.conftest import RewardServer, running
from tests.support.examples import Block, printed, run, sections
from tests.support.servers import FaultServer
from tests.support.snippets import ROOT, block

pytestmark = pytest.mark.usefixtures("needs_process")

SECTIONS = sections("howto.md")
JUDGES = re.compile("http://localhost:8000|https://api.vendor.example(?=/v1)")
"""Where the page has judges."""
SETUP = Block("bash", "", block("docs/howto.md", "bash", "export REWARD_SERVER_URL"))
"""What every task begins with."""
OTHER, THEIRS = "Qwen/Qwen3-4B", "a-model-of-theirs"


def is_run(one: Block) -> bool:
    """Whether it is run here: what `make` would do is tried by tests/cli/test_snippets.py."""
    return "make " not in one.text


@pytest.fixture(scope="module")
def reward_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A real reward server with the page's own function."""
    folder = tmp_path_factory.mktemp("server")
    [function] = [one for blocks in SECTIONS.values() for one in blocks if one.file == "my_rewards.py"]
    (folder / function.file).write_text(function.text)
    with running(folder, "--workers", "1", REWARD_FUNCTIONS=folder / function.file) as one:
        yield one


@pytest.fixture(scope="module")
def judges() -> Iterator[dict[str, FaultServer]]:
    """By the address that the page has for it: the stack's judge, and the vendor's."""
    own, vendor = (FaultServer(script=FAKE_JUDGE) for _ in range(2))
    own.set(content="Polite and right.\nREWARD: 0.8", by_model={OTHER: "REWARD: 0.600"})
    vendor.set(content="REWARD: 0.900", models=[{"id": THEIRS, "root": THEIRS}])
    yield {"http://localhost:8000": own, "https://api.vendor.example": vendor}
    own.kill()
    vendor.kill()


@pytest.mark.parametrize("heading", SECTIONS)
def test_task(
    heading: str,
    reward_server: RewardServer,
    judges: dict[str, FaultServer],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Files, commands and code of a task print what the comments say, and warn of nothing."""
    shutil.copy(ROOT / "examples" / "samples.jsonl", tmp_path / "rollouts.jsonl")
    here = []
    for one in filter(is_run, [SETUP, *SECTIONS[heading]]):
        text = JUDGES.sub(lambda found: judges[found[0]].url, one.text)
        here.append(one._replace(text=text.replace("http://localhost:6000", reward_server.url)))
    if any("curl" in one.text for one in here):
        request.getfixturevalue("needs_curl")
    run(here, tmp_path)


def test_every_print_is_checked() -> None:
    """No `print` of the page goes without its comment."""
    blocks = [one for blocks in SECTIONS.values() for one in blocks]
    assert sum(one.text.count("print(") for one in blocks) == len(printed(blocks))
