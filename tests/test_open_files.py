"""How many files may be open: commands and servers raise the limit, the library keeps to it and warns where it must."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import pytest

from rewardstack.core import descriptors
from rewardstack_cli.main import main as command_line
from services.up import command_line as make

FILES = resource.RLIMIT_NOFILE
Limit = Callable[[int], None]


@pytest.fixture
def limit() -> Iterator[Limit]:
    """Sets this process's soft limit, which is as it was afterwards."""
    before = resource.getrlimit(FILES)
    yield lambda files: resource.setrlimit(FILES, (files, before[1]))
    resource.setrlimit(FILES, before)


@pytest.mark.parametrize(
    ("files", "wanted", "warned"),
    [(1024, 1028, False), (1024, 64, False), (300, 1028, True)],
    ids=["most of them", "all of them", "a part of them"],
)
def test_a_warning_where_much_is_lost(
    limit: Limit, caplog: pytest.LogCaptureFixture, files: int, wanted: int, warned: bool
) -> None:
    """Connections stay within the limit, which the library leaves alone; fewer than half of them log a warning."""
    descriptors._warn_once.cache_clear()
    limit(files)
    assert 0 < descriptors.max_connections(wanted) <= min(wanted, files - descriptors.RESERVE)
    assert [f"ulimit -n {4 * wanted}" in record.getMessage() for record in caplog.records] == [True] * warned
    assert resource.getrlimit(FILES)[0] == files


def run_command_line(_: pytest.MonkeyPatch) -> None:
    assert command_line(["routes"]) == 0


def run_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.up.up.show_plan", lambda: None)
    monkeypatch.setattr("sys.argv", ["services.up", "plan"])
    make.main()


def test_this_process() -> None:
    """Tests run with the limit that the system allows."""
    soft, hard = resource.getrlimit(FILES)
    assert soft == hard


@pytest.mark.parametrize("command", [run_command_line, run_make])
def test_commands_raise_the_limit(
    limit: Limit, monkeypatch: pytest.MonkeyPatch, command: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """A command may open as many files as the system allows it, whatever the shell's own limit is."""
    limit(1024)
    command(monkeypatch)
    soft, hard = resource.getrlimit(FILES)
    assert soft == hard
