"""What the tests in Ray share: a cluster, samples, and processes to be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rewardstack import Request, Score
from rewardstack.ray_judge.cluster import connect

JUDGE = "llm_judge_remote_ray"
PLACE_SECONDS = 5.0


def samples(count: int, text: str = "It is") -> list[Request]:
    """Samples that are all different.

    Args:
        count: how many.
        text: that each candidate begins with.
    """
    return [Request(JUDGE, f"{text} {one}.", "42", {"problem": "What is 6 times 7?"}) for one in range(count)]


def kill(process: int) -> None:
    """It is gone at once, and has no say."""
    os.kill(process, signal.SIGKILL)


def statuses(scores: list[Score]) -> dict[str, int]:
    """How many scores have each status."""
    return {status: sum(score.status == status for score in scores) for status in {one.status for one in scores}}


@contextmanager
def logical(home: Path, processors: int, gpus: int) -> Iterator[dict[str, str]]:
    """This process in a cluster of its own that counts as many processors and GPUs, whatever the machine has.

    Args:
        home: that Ray finds, and must leave as it is.
        processors: that it counts.
        gpus: that it counts.
    """
    before, os.environ["HOME"] = os.environ.get("HOME", ""), str(home)
    try:
        with connect(processors=processors, gpus=gpus) as variables:
            yield variables
    finally:
        os.environ["HOME"] = before


def processes_that_name(text: str) -> list[str]:
    """Command lines of processes in which a text stands."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def environment(variables: Mapping[str, str], home: Path) -> dict[str, str]:
    """The variables of another process that is to find a cluster, or to have its own where there are none."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("RAY_", "LLM_JUDGE_"))}
    return {**kept, "HOME": str(home), **variables}
