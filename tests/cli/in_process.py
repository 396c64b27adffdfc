"""Runs the command in the test's own process, as if the process were new, and leaves the process as it was."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from rewardstack.core import event_loop
from rewardstack_cli import console
from rewardstack_cli.main import main

PACKAGES = ("rewardstack", "rewardstack_settings", "rewardstack_cli")
STATE: dict[str, Callable[[], object]] = {
    "rewardstack.core.event_loop._current": lambda: None,
    "rewardstack.client._clients": dict,
    "rewardstack.client._registered": dict,
    "rewardstack.scorers.names._checked": set,
    "rewardstack.settings._reported": set,
}
"""What the client keeps as long as its process lives, and what makes its first value."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Result:
    """How a command ended."""

    status: int
    out: str
    err: str


def run_in_process(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> Result:
    """Run `rewardstack` with these arguments.

    Args:
        arguments: of the command line.
        cwd: the working directory.
        environment: all environment variables; `COLUMNS` is the width of the output.

    Returns:
        The exit status, and what the command wrote, also while its process would have ended.
    """
    out, err = _stream("strict"), _stream("backslashreplace")
    with _new_process(cwd, environment), redirect_stdout(out), redirect_stderr(err):
        try:
            status = _status(arguments)
        finally:
            _stop_event_loop()
    return Result(status, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def _status(arguments: Sequence[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def _stop_event_loop() -> None:
    """Stop the client's event loop, as its process does at its exit."""
    loop = event_loop._current
    if loop is not None:
        loop.stop()
        loop.loop.close()


class _Stream(io.TextIOWrapper):
    """A stream that refuses what a pipe in UTF-8 refuses."""

    buffer: io.BytesIO


def _stream(errors: str) -> _Stream:
    return _Stream(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


@contextmanager
def _new_process(cwd: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Hide what tests and earlier commands left in this process."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    reactions = {number: signal.getsignal(number) for number in SIGNALS}
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ, environment, clear=True):
        patch.chdir(cwd)
        patch.setattr(sys, "stdin", io.StringIO())
        for name, new in STATE.items():
            patch.setattr(name, new())
        for stream in (console.out, console.err):
            patch.setattr(stream, "width", int(environment["COLUMNS"]))
        _clear_caches()
        root.handlers = []
        try:
            yield
        finally:
            root.handlers = handlers
            root.setLevel(level)
            for number, reaction in reactions.items():
                signal.signal(number, reaction)
            _clear_caches()


def _clear_caches() -> None:
    """Clear what the functions of the client's modules remember."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in PACKAGES:
            for value in vars(module).values():
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()
