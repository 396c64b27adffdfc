"""The script itself: what is wrong with a stack it finds, and says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rewardstack import Score
from rewardstack.score import OnError
from tests.end_to_end.checks import Check, both_ways_agree, cache, direct, through_the_reward_server
from tests.end_to_end.conftest import script
from tests.end_to_end.outage import command, judge_down
from tests.end_to_end.samples import Sample
from tests.end_to_end.stack import Reply, Stack, Unmet

ADDRESSES = ("http://rewards", "http://judge", "http://embedding")


def test_nothing_there() -> None:
    """Where nothing answers the script says so, and ends."""
    done = script("--reward-url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "FAIL  health: http://127.0.0.1:9/ready: " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--judge-url", "http://127.0.0.1:9", "--stop-judge", "true"],
        ["--stop-judge", "true", "--start-judge", "true"],
    ],
)
def test_half_an_outage(arguments: list[str]) -> None:
    """A judge that would be stopped and not started, or not asked, is a mistake of the caller's."""
    done = script("--reward-url", "http://127.0.0.1:9", *arguments)
    assert (done.returncode, "--start-judge" in done.stdout) == (2, True)


def test_commands() -> None:
    """A command that fails is said with its own words; it is run without a shell."""
    command("echo $HOME ; exit 1")()
    with pytest.raises(Unmet, match="No such file"):
        command("ls /no-such-folder")()


class Zeroes(Stack):
    """A stack for which everything is worth 0, as where failures are taken for scores."""

    def score(self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None) -> list[Score]:
        return [Score(0.0) for _ in some]


class Deaf(Stack):
    """A stack without a cache, which does not notice that it has no judge either."""

    def score(self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None) -> list[Score]:
        return [Score(sample.low) for sample in some]

    def ask(self, url: str, body: Any = None, *, method: str = "", **headers: str) -> Reply:
        raise Unmet("nothing answers")


@pytest.mark.parametrize("check", [through_the_reward_server, direct, both_ways_agree, cache])
def test_wrong_scores(check: Check) -> None:
    """Scores of 0 for everything are found wrong."""
    with pytest.raises(Unmet, match="is right"):
        check(Zeroes(*ADDRESSES))


def test_no_cache() -> None:
    """Right scores that never come from the cache are found wrong."""
    with pytest.raises(Unmet, match="scored anew"):
        cache(Deaf(*ADDRESSES))


def test_zero_for_a_failure() -> None:
    """A judge that is down and scores 0 all the same is found wrong, and is started again."""
    started: list[str] = []
    with pytest.raises(Unmet, match=r"it is ok \(0.0\) without a judge"):
        judge_down(Deaf(*ADDRESSES), lambda: None, lambda: started.append("judge"))
    assert ["judge"] == started
