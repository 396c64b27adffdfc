"""The script itself: what is wrong with a stack it finds, and says."""

from __future__ import annotations

import pytest

from tests.end_to_end.conftest import script
from tests.end_to_end.outage import command
from tests.end_to_end.stack import Unmet


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
