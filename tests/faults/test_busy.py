"""A server that is busy is not taken for one that hangs."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.rules.conftest import clean_environment, running
from tests.support.waiting import eventually

HEAD = (
    b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12000000\r\n\r\n"
)
PAUSE = 1.0
ITEM = {"data_source": "gsm8k", "solution_str": "#### 4", "ground_truth": "4"}


@contextmanager
def slow_client(port: int) -> Iterator[None]:
    """While a client sends a request slowly, which the gateway would spare the server."""
    stopped = Event()
    with socket.create_connection(("127.0.0.1", port)) as client:

        def send() -> None:
            client.sendall(HEAD)
            while not stopped.wait(PAUSE):
                client.sendall(65536 * b" ")

        sending = Thread(target=send)
        sending.start()
        try:
            yield
        finally:
            stopped.set()
            sending.join()


@pytest.mark.usefixtures("needs_process")
@pytest.mark.nightly
def test_all_threads_are_taken(tmp_path: Path) -> None:
    """Where every place has a client that sends slowly, the server says that it lives and is ready."""
    with running(tmp_path, "--workers", "1", REWARD_THREADS=1) as server:
        port = server.url.rpartition(":")[2]

        def check() -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "rewardstack_rules.http.healthcheck"]
            environment = clean_environment(REWARD_PORT=port)
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

        with slow_client(int(port)), ThreadPoolExecutor(1) as pool:
            eventually(lambda: "rewardstack_body_bytes 0.0" not in server.get("/metrics").text)
            waiting = pool.submit(server.score, ITEM)
            for _ in range(3):
                assert check().returncode == 0
            assert server.get("/health").status_code == 200
            assert not waiting.done()
