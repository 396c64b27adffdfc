"""Servers that tests start, stop and freeze: a faulty reward server, a real Redis."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Protocol

from rewardstack_rules.isolation.process import die_with_parent

ROOT = Path(__file__).resolve().parents[2]
FAULT_SERVER = Path(__file__).with_name("fault_server.py")


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["aiohttp.web"])
"""Forks the fake servers from one process that has imported aiohttp: milliseconds each instead of half a second."""


WORKER_COUNT = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
PORTS = range(10_000 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), 32_000, WORKER_COUNT)
"""Below those that the kernel gives to outgoing connections; each process of a test run has its own."""
_given: set[int] = set()


class Process(Protocol):
    """What `subprocess` and `multiprocessing` have in common."""

    @property
    def pid(self) -> int | None: ...

    def kill(self) -> None: ...


class Served:
    """A server in a process of its own, to be frozen and killed."""

    process: Process

    def freeze(self) -> None:
        """It accepts connections and does not answer."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It continues."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


class Program(Served):
    """A server that is a program."""

    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """It is gone."""
        self.process.kill()
        self.process.wait()


class FaultServer(Served):
    """A server with faults on demand, in a process of its own.

    Args:
        port: to listen on; 0 for one that was not used before, for clients remember what a URL has told.
        script: the server; it prints its port.
    """

    process: ForkServerProcess

    def __init__(self, port: int = 0, script: Path = FAULT_SERVER) -> None:
        printed, output = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=_run, args=(script, port or free_port(), output), daemon=True)
        self.process.start()
        output.close()
        with os.fdopen(os.dup(printed.fileno())) as lines:
            self.port = int(lines.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """It is gone."""
        self.process.kill()
        self.process.join()

    def set(self, **state: Any) -> None:
        """Changes how it behaves from now on."""
        body = json.dumps(state).encode()
        request = urllib.request.Request(f"{self.url}/_set", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()

    def stats(self) -> dict[str, Any]:
        """What it was asked so far; missing counts are 0."""
        with urllib.request.urlopen(f"{self.url}/_stats") as reply:
            counts: dict[str, Any] = json.load(reply)
        return {"requests": 0, "items": 0, "probes": 0, "scored": 0, "authorized": 0, "types": 0, **counts}


class Redis(Program):
    """A real Redis on a port of its own, without persistence.

    Args:
        folder: for its files.
        options: further options of `redis-server`.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(folder), *options]
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        wait_for_port(self.port)


def _run(script: Path, port: int, output: Connection) -> None:
    """Run a server's script; what it prints goes to `output`."""
    die_with_parent(os.getppid())
    os.dup2(output.fileno(), sys.stdout.fileno())
    sys.argv = [str(script), str(port)]
    runpy.run_path(str(script), run_name="__main__")


def free_port() -> int:
    """A port that nothing listens on, and that this process never gave before."""
    while True:
        port = random.choice(PORTS)
        if port not in _given:
            _given.add(port)
            with suppress(OSError), socket.create_server(("127.0.0.1", port)):
                return port


def wait_for_port(port: int, seconds: float = 60.0) -> None:
    """Returns when something listens on `port`; raises TimeoutError when nothing does in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


@contextmanager
def fault_server(port: int = 0) -> Iterator[FaultServer]:
    """A `FaultServer` that is gone afterwards."""
    server = FaultServer(port)
    try:
        yield server
    finally:
        server.kill()
