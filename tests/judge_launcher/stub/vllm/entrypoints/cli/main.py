"""`python -m vllm.entrypoints.cli.main serve MODEL FLAGS`: judges, and tells on every path how it was started.

STUB_VLLM=die ends it while it starts; STUB_VLLM=hang never answers. A verdict takes as many seconds
as the file STUB_SECONDS says. After SIGTERM it first answers what it has been asked, as vLLM does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """Answers every GET in the same way, and every POST with a verdict."""

    def do_GET(self) -> None:
        served = {"data": [{"id": "stub"}]}
        self.answer({**served, "pid": os.getpid(), "arguments": sys.argv[1:], "environment": dict(os.environ)})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        print("the stub is asked", flush=True)
        if file := os.environ.get("STUB_SECONDS"):
            time.sleep(float(Path(file).read_text()))
        message = {"role": "assistant", "content": "REWARD: 0.5"}
        self.answer({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def answer(self, reply: dict[str, object]) -> None:
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "client"


def flag(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def main() -> None:
    print("the stub begins", flush=True)
    if os.environ.get("STUB_VLLM") == "die":
        raise RuntimeError("the stub is out of memory")
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if os.environ.get("STUB_VLLM") == "hang":
        time.sleep(600)
    if "--uds" in sys.argv:
        server: socketserver.BaseServer = socketserver.ThreadingUnixStreamServer(flag("--uds"), Handler)
    else:
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        socketserver.ThreadingTCPServer.address_family = socket.AF_INET
        server = socketserver.ThreadingTCPServer((flag("--host"), int(flag("--port"))), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
