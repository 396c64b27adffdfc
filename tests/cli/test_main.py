"""The command itself: its help, its version, its extras, its behaviour in a pipe."""

from __future__ import annotations

import subprocess

import pytest

import rewardstack

from .conftest import COMMAND, Cli


def test_version(cli: Cli) -> None:
    """`--version` is the package's."""
    assert cli("--version").out == f"rewardstack {rewardstack.__version__}\n"


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize(("columns", "arguments"), [("80", ["routes"]), ("200", ["routes", "chess"])])
def test_process(cli: Cli, columns: str, arguments: list[str]) -> None:
    """`python -m rewardstack_cli` prints and returns what the command does in the test's own process."""
    cli.variables["COLUMNS"] = columns
    assert cli.process(*arguments) == cli(*arguments)


@pytest.mark.usefixtures("needs_process")
def test_width_without_a_terminal(cli: Cli) -> None:
    """Where neither a terminal nor `COLUMNS` sets a width, tables have 120 columns."""
    environment = {name: value for name, value in cli.environment().items() if name != "COLUMNS"}
    done = subprocess.run((*COMMAND, "routes"), env=environment, capture_output=True, text=True, check=True)
    cli.variables["COLUMNS"] = "120"
    assert done.stdout == cli("routes").out


@pytest.mark.parametrize("command", ["score", "submit", "check", "routes", "prepare"])
def test_each_command_has_help(cli: Cli, command: str) -> None:
    """The help lists the commands, and each has its own."""
    assert command in cli("--help").out
    assert f"usage: rewardstack {command}" in cli(command, "--help").out


@pytest.mark.parametrize("arguments", [[], ["rate"]])
def test_no_such_command_is_an_error(cli: Cli, arguments: list[str]) -> None:
    """Without a command, or with an unknown one, the usage is shown."""
    result = cli(*arguments)
    assert result.status == 2
    assert "usage: rewardstack" in result.err


@pytest.mark.usefixtures("needs_process")
def test_a_reader_that_leaves_is_no_error_message(cli: Cli) -> None:
    """`rewardstack routes | true` ends without a word."""
    process = subprocess.Popen(
        (*COMMAND, "routes"), env=cli.environment(), cwd=cli.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    process.wait(30)
