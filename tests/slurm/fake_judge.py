#!/opt/rewardstack/bin/python
"""Takes the place of vLLM in the image of the judge: `fake_judge.py MODEL --uds PATH --served-model-name NAME`.

It asks for VLLM_API_KEY under /v1 as vLLM does, thinks for a moment, and its verdict follows from the prompt alone. The
`id` of a reply is the name of the run folder. By the name loading_judge.py it loads for ever, and hears no word then.
"""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sys
import time
import zlib
from http.server import BaseHTTPRequestHandler
from pathlib import Path

THINKING_SECONDS = 1.0


class Handler(BaseHTTPRequestHandler):
    """Answers as a judge."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        model = {"id": flag("--served-model-name"), "owned_by": "vllm", "max_model_len": 4096}
        self.answer({"object": "list", "data": [model]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(THINKING_SECONDS)
        said = json.dumps(body["messages"]) if "messages" in body else ""
        message = {"role": "assistant", "content": f"REWARD: 0.{zlib.crc32(said.encode()) % 1000:03}"}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        told = {"id": Path(flag("--uds")).parent.name, "object": "chat.completion", "model": body.get("model")}
        self.answer({**told, "choices": [choice]})

    def answer(self, reply: dict[str, object]) -> None:
        allowed = not self.path.startswith("/v1") or self.headers["Authorization"] == f"Bearer {KEY}"
        body = json.dumps(reply if allowed else {"error": "Unauthorized"}).encode()
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "gateway"


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 4096


def flag(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


if __name__ == "__main__":
    if Path(__file__).stem == "loading_judge":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    KEY = os.environ["VLLM_API_KEY"]
    Server(flag("--uds"), Handler).serve_forever()
