"""A fake SandboxFusion with the endpoint `/run_code`, after its source code (bytedance/SandboxFusion, commit 469de08).

It runs Python as SandboxFusion does with `isolation: none`: in a new folder, with the server's environment, up to a
limit of elapsed time. The reply then contains the files of `fetch_files`.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.threaded import serving

OUTPUT_BYTES = 219_264
"""Maximum bytes of an output in a reply, as measured with the real SandboxFusion."""


@dataclass
class Fusion:
    """A running server, the requests that it got, and its faults.

    Attributes:
        url: its base URL.
        asked: the bodies of the requests, as JSON objects.
        faults: faults of the next requests: an HTTP status, `SandboxError`, `late` (the program exceeds
            `run_timeout`), or any other text, which is then the reply.
        always: fault of all other requests; None if they get a normal reply.
        retry_after: seconds in the header Retry-After of replies with status 503.
    """

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    faults: list[int | str] = field(default_factory=list)
    always: int | str | None = None
    retry_after: int = 0


@contextmanager
def sandbox_fusion() -> Iterator[Fusion]:
    """Run a server on a free port."""
    fusion = Fusion()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(200 if self.path == "/v1/ping" else 404, b'"pong"')

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/run_code":
                self._reply(404, b'{"detail": "Not Found"}')
                return
            fusion.asked.append(body)
            fault = fusion.faults.pop(0) if fusion.faults else fusion.always
            if fault is None:
                self._reply(200, _run(body))
            elif isinstance(fault, int):
                self._reply(fault, b'{"detail": "not now"}')
            elif fault == "SandboxError":
                message = f"exception on running code {body['code']}: [Errno 28] No space left on device None"
                self._reply(200, _json(fault, message))
            elif fault == "late":
                self._reply(200, _json("Failed", run_result=_result("TimeLimitExceeded")))
            else:
                self._reply(200, fault.encode())

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status == 503:
                self.send_header("Retry-After", str(fusion.retry_after))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with serving(Handler) as fusion.url:
        yield fusion


def _json(status: str, message: str = "", **more: Any) -> bytes:
    reply = {"status": status, "message": message, "compile_result": None, "run_result": None, "files": {}, **more}
    return json.dumps({**reply, "executor_pod_name": None}).encode()


def _result(status: str, **more: Any) -> dict[str, Any]:
    result = {"status": status, "execution_time": 1.0, "return_code": None, "stdout": "", "stderr": ""}
    return result | more


def _run(body: dict[str, Any]) -> bytes:
    """Return the reply to a request that runs Python."""
    assert body["language"] == "python" and body.get("memory_limit_MB", -1) == -1
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder, started = Path(name), time.monotonic()
        for path, content in body["files"].items():
            (folder / path).write_bytes(base64.b64decode(content))
        source = folder / "tmp4711.py"
        source.write_text(body["code"])
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SECRET_KEY": "4711"}
        process = subprocess.Popen(
            ["/bin/bash", "-c", f"python {source}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            stdout, stderr = process.communicate((body.get("stdin") or "").encode(), body.get("run_timeout", 10))
            status = "Finished"
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            status = "TimeLimitExceeded"
        ran = _result(
            status,
            execution_time=time.monotonic() - started,
            return_code=process.returncode if status == "Finished" else None,
            stdout=stdout[:OUTPUT_BYTES].decode(errors="replace"),
            stderr=stderr[:OUTPUT_BYTES].decode(errors="replace"),
        )
        files = {
            path: base64.b64encode((folder / path).read_bytes()).decode()
            for path in body.get("fetch_files", [])
            if (folder / path).is_file()
        }
    return _json("Success" if ran["return_code"] == 0 else "Failed", run_result=ran, files=files)
