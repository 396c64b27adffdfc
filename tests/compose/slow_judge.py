"""In place of vLLM: a judge that takes some seconds for a verdict, and finishes its requests when it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECONDS = 8


class Judge(BaseHTTPRequestHandler):
    """Answers a POST after SECONDS."""

    def do_POST(self) -> None:
        """A verdict."""
        print("request begun", flush=True)
        time.sleep(SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


class Server(ThreadingHTTPServer):
    """Waits for its requests when it is closed."""

    daemon_threads = False


if __name__ == "__main__":
    server = Server(("0.0.0.0", int(sys.argv[1])), Judge)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    server.server_close()
