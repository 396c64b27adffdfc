"""The examples of `docs/judging.md`, run as they are printed, with a scripted judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.examples import printed, run, sections
from tests.support.servers import FaultServer

pytestmark = pytest.mark.usefixtures("needs_process")

SECTIONS = sections("judging.md")
REPLIES: dict[str, dict[str, Any]] = {
    "Grade on a scale from 1 to 10": {"content": "It says how long, but not how.\nREWARD: 8/10"},
    "Grade by a rubric": {"met": ["Advises", "Mentions"]},
    "Show a conversation": {"content": "REWARD: 0.900"},
    "Show images": {"content": "REWARD: 1.000"},
    "Keep to the limits of a paid judge": {"content": "REWARD: 0.800"},
}
"""What the judge of a section replies."""


@pytest.fixture
def judge() -> Iterator[FaultServer]:
    """The judge of the page."""
    one = FaultServer(script=FAKE_JUDGE)
    yield one
    one.kill()


@pytest.mark.parametrize("heading", SECTIONS)
def test_examples(heading: str, judge: FaultServer, tmp_path: Path) -> None:
    """Files, commands and code of a section print what the comments say, and warn of nothing."""
    judge.set(**REPLIES[heading])
    run(
        [one._replace(text=one.text.replace("http://localhost:8000", judge.url)) for one in SECTIONS[heading]], tmp_path
    )


def test_every_print_is_checked() -> None:
    """No `print` of the page goes without its comment."""
    blocks = [one for blocks in SECTIONS.values() for one in blocks]
    assert sum(one.text.count("print(") for one in blocks) == len(printed(blocks))
