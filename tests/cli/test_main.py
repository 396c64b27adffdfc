"""The command itself: its help, its version, its extras, its behaviour in a pipe."""

from __future__ import annotations

import subprocess

import pytest

import rewardstack

from .conftest import COMMAND, SOURCES, Cli


def test_version(cli: Cli) -> None:
    """`--version` is the package's."""
    assert cli("--version").out == f"rewardstack {rewardstack.__version__}\n"


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


def test_without_rich_the_extra_is_named(cli: Cli) -> None:
    """Where the extra `cli` is absent, the command says so instead of failing to import."""
    (cli.cwd / "sitecustomize.py").write_text("import sys\nsys.modules['rich'] = None\n")
    cli.variables["PYTHONPATH"] = f"{cli.cwd}:{SOURCES}"
    result = cli("routes")
    assert result.status == 2
    assert 'pip install "rewardstack[cli]"' in result.err


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
