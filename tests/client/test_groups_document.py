"""The examples of `docs/groups.md`, run as they are printed, with a judge that prefers the highest number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardstack.routing.syntax import load_judges
from rewardstack.scorers.judge import check_named_judge
from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.examples import printed, run, sections
from tests.support.servers import FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")

SECTIONS = sections("groups.md")
TRAINER = SECTIONS.pop("Use it in a trainer")


@pytest.fixture
def judge() -> Iterator[FaultServer]:
    """The judge of the page."""
    one = FaultServer(script=FAKE_JUDGE)
    one.set(compares=True)
    yield one
    one.kill()


@pytest.mark.parametrize("heading", SECTIONS)
def test_examples(heading: str, judge: FaultServer, tmp_path: Path) -> None:
    """Files, commands and code of a section print what the comments say, and warn of nothing."""
    run(
        [one._replace(text=one.text.replace("http://localhost:8000", judge.url)) for one in SECTIONS[heading]], tmp_path
    )


def test_every_print_is_checked() -> None:
    """No `print` of the page goes without its comment."""
    blocks = [one for blocks in SECTIONS.values() for one in blocks]
    assert sum(one.text.count("print(") for one in blocks) == len(printed(blocks))


def test_judge_for_a_trainer(tmp_path: Path) -> None:
    """The table for TRL is one that is accepted."""
    path = tmp_path / "routes.toml"
    path.write_text(TRAINER[0].text)
    [judge] = load_judges(str(path))
    check_named_judge(judge)
    assert judge.comparison is not None
    assert ("listwise", 8) == (judge.comparison.mode, judge.comparison.group_size)
