"""A command in the test's process starts like a new process, and leaves the process as it was."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import Any

from tests.support.servers import free_port

from .conftest import Cli
from .in_process import SIGNALS, STATE

SLIP = ("explain", "--data-source", "gsm8k", "--solution", "x", "--extra", '{"metod": 1}', "--timeout", "0.1")


def state() -> dict[str, Any]:
    """Return what a command may change in its process."""
    modules = {name: name.rpartition(".") for name in STATE}
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "handlers": [*logging.getLogger().handlers],
        "level": logging.getLogger().level,
        "stdin": sys.stdin,
        "signals": [signal.getsignal(number) for number in SIGNALS],
        **{name: id(getattr(sys.modules[module], key)) for name, (module, _, key) in modules.items()},
    }


def test_state_of_the_process(cli: Cli) -> None:
    """Environment, folder, logging, signals and the client's state are those from before; no thread is left."""
    cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    before, threads = state(), {*threading.enumerate()}
    assert cli(*SLIP).status == 1
    assert state() == before
    assert {*threading.enumerate()} <= threads  # one of an earlier test may end meanwhile


def test_each_command_is_new(cli: Cli) -> None:
    """What is logged once in a process is in the output of each command, and not in pytest's log alone."""
    cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    for _ in range(2):
        assert "did you mean extra_info.method?" in cli(*SLIP).err
