"""Run `shared/tools/helm/helm.py` for many renderings in one process; its Python imports this module when it starts.

Each line of standard input is a JSON object: `arguments` of a command, and `live`, the objects that the cluster has
already, by the path of the API. Each line of standard output is the JSON list of exit status, output and errors.
"""

import contextlib
import copy
import functools
import http.server
import importlib
import io
import json
import os
import runpy
import socketserver
import sys
from typing import Any

import yaml

# Helm opens 17 connections at once, and the server's queue holds five: the kernel then drops connections. And headers
# and body are two packets, so that each of the 80 requests of a rendering waits 40 ms for an acknowledgment.
socketserver.TCPServer.request_queue_size = 128
socketserver.StreamRequestHandler.disable_nagle_algorithm = True
yaml.SafeLoader = yaml.CSafeLoader
validation: Any = importlib.import_module("kubernetes_validate.utils")
validation.schema_contents = functools.cache(validation.schema_contents)
LIVE: dict[str, Any] = {}


class Server(http.server.ThreadingHTTPServer):
    """An API server whose cluster has objects already."""

    def __init__(self, address: Any, handler: Any) -> None:
        tool = handler.do_GET.__globals__
        tool["store"].update(copy.deepcopy(LIVE))

        class Handler(handler):
            def do_PATCH(self) -> Any:
                """Merge a change of an object that was there; the tool knows only whole objects."""
                path = self.path.split("?")[0]
                if path not in LIVE:
                    return super().do_PATCH()
                change = json.loads(self.rfile.read(int(self.headers["content-length"])))
                return self.reply(tool["deep_merge"](tool["store"][path], change))

        super().__init__(address, Handler)


def run(arguments: list[str], live: dict[str, Any]) -> tuple[int, str, str]:
    """Return exit status, output and errors of one command."""
    LIVE.clear()
    LIVE.update(live)
    sys.argv = ["helm", *arguments]
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(sys.orig_argv[1], run_name="__main__")
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), err.getvalue()


if len(sys.orig_argv) > 1 and sys.orig_argv[1].endswith("helm.py"):
    http.server.ThreadingHTTPServer = Server  # type: ignore[misc,assignment]
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
    os._exit(0)
