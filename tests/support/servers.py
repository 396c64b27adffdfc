"""Start, freeze and kill servers in tests: fake servers with faults on demand, and a real Redis."""

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
from tests.support.forked import Forked

ROOT = Path(__file__).resolve().parents[2]
FAULT_SERVER = Path(__file__).with_name("fault_server.py")


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["aiohttp.web"])
"""Forks fake servers from a process that has imported aiohttp: a start takes milliseconds, not half a second."""


PORTS = range(10_000, 32_000)
"""Ports below those that the kernel uses for outgoing connections."""
BLOCK = 100
"""Ports that a test process reserves at a time."""


class Ports:
    """Ports that no other test process on this machine uses, of this clone or another.

    A process reserves a block of ports by binding the UDP port with the number of the first one: servers listen on TCP
    ports, and the kernel ends a reservation with its process.
    """

    def __init__(self) -> None:
        self._left: list[int] = []

    def take(self) -> int:
        """Return a port that nothing listens on, and that this process has not used before."""
        while True:
            if not self._left:
                self._left = self._reserve()
            port = self._left.pop()
            with suppress(OSError), socket.create_server(("127.0.0.1", port)):
                return port

    def _reserve(self) -> list[int]:
        """Reserve a block, and return its ports in random order."""
        for first in random.sample(range(PORTS.start, PORTS.stop, BLOCK), len(PORTS) // BLOCK):
            reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with suppress(OSError):
                reservation.bind(("127.0.0.1", first))
                reservation.detach()  # stays open until the process ends
                return random.sample(range(first, first + BLOCK), BLOCK)
            reservation.close()
        raise RuntimeError(f"other test processes use all ports from {PORTS.start} to {PORTS.stop - 1}")


_ports = Ports()


class Process(Protocol):
    """A process of `subprocess` or `multiprocessing`."""

    @property
    def pid(self) -> int | None: ...

    def kill(self) -> None: ...


class Served:
    """A server in its own process, which a test can freeze."""

    process: Process

    def freeze(self) -> None:
        """Stop the process (SIGSTOP): it accepts connections, but does not reply."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue the process after `freeze`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


class Program(Served):
    """A server that is started as a command."""

    process: subprocess.Popen[bytes] | Forked

    def kill(self) -> None:
        """Kill the process and wait for its end."""
        self.process.kill()
        self.process.wait()


class FaultServer(Served):
    """A fake server with faults on demand, in its own process.

    Args:
        port: port to listen on; 0 for one that was never used, because clients cache facts about a URL.
        script: script of the server, which prints its port and handles `/_set` and `/_stats`.
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
        """Kill the process and wait for its end."""
        self.process.kill()
        self.process.join()

    def set(self, **state: Any) -> None:
        """Change its behavior; the script describes the options."""
        body = json.dumps(state).encode()
        request = urllib.request.Request(f"{self.url}/_set", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()

    def stats(self) -> dict[str, Any]:
        """Return its counts of requests since its start; missing counts are 0."""
        with urllib.request.urlopen(f"{self.url}/_stats") as reply:
            counts: dict[str, Any] = json.load(reply)
        return {"requests": 0, "items": 0, "probes": 0, "scored": 0, "authorized": 0, "types": 0, **counts}


class Redis(Program):
    """A real Redis on a free port, without persistence.

    Args:
        folder: folder for its files.
        options: additional options of `redis-server`.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(folder), *options]
        self.start()

    def start(self) -> None:
        """Start it, also after a kill, and return when it listens."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        wait_for_port(self.port)


def _run(script: Path, port: int, output: Connection) -> None:
    """Run a server's script in this process, with its standard output redirected to `output`."""
    die_with_parent(os.getppid())
    os.dup2(output.fileno(), sys.stdout.fileno())
    sys.argv = [str(script), str(port)]
    runpy.run_path(str(script), run_name="__main__")


def free_port() -> int:
    """Return a port that nothing listens on; see `Ports`."""
    return _ports.take()


def wait_for_port(port: int, seconds: float = 60.0) -> None:
    """Return when something listens on `port`; raise TimeoutError if nothing does within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 30).close()
            return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


@contextmanager
def fault_server(port: int = 0) -> Iterator[FaultServer]:
    """Run a `FaultServer` for the time of the block."""
    server = FaultServer(port)
    try:
        yield server
    finally:
        server.kill()
