"""Servers that tests start, stop and freeze: a faulty reward server, a real Redis."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FAULT_SERVER = Path(__file__).with_name("fault_server.py")


class Served:
    """A server in a process of its own, to be frozen and killed."""

    process: subprocess.Popen[str]

    def freeze(self) -> None:
        """It accepts connections and does not answer."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """It is gone."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class FaultServer(Served):
    """A server with faults on demand, in a process of its own.

    Args:
        port: to listen on; 0 for any.
        script: the server; it prints its port.
    """

    def __init__(self, port: int = 0, script: Path = FAULT_SERVER) -> None:
        command = [sys.executable, str(script), str(port)]
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def set(self, **state: Any) -> None:
        """Changes how it behaves from now on."""
        body = json.dumps(state).encode()
        request = urllib.request.Request(f"{self.url}/_set", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()

    def stats(self) -> dict[str, Any]:
        """What it was asked so far; missing counts are 0."""
        with urllib.request.urlopen(f"{self.url}/_stats") as reply:
            counts: dict[str, Any] = json.load(reply)
        return {"requests": 0, "items": 0, "knocks": 0, "scored": 0, "authorized": 0, "types": 0, **counts}


class Redis(Served):
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
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, text=True)
        wait_for_port(self.port)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, seconds: float = 20.0) -> None:
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
