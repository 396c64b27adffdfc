"""In place of vLLM, for tests of `make up`: a judge that starts at once and finds every answer right.

With 9 GiB or more for keys and values (VLLM_CPU_KVCACHE_SPACE) it ends as one without memory does.
"""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = {"object": "list", "data": [{"id": "small", "root": "/small", "max_model_len": 4096}]}
VERDICT = {"message": {"role": "assistant", "content": "REWARD: 1"}, "finish_reason": "stop", "index": 0}
CHAT = {"object": "chat.completion", "model": "small", "choices": [VERDICT]}


class Judge(BaseHTTPRequestHandler):
    """What the client asks of one."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The models."""
        self._answer(MODELS)

    def do_POST(self) -> None:
        """A verdict."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(CHAT)

    def _answer(self, said: dict[str, Any]) -> None:
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    if int(os.environ["VLLM_CPU_KVCACHE_SPACE"]) >= 9:
        raise RuntimeError("no memory for the cache of keys and values")
    ThreadingHTTPServer(("0.0.0.0", 8000), Judge).serve_forever()
