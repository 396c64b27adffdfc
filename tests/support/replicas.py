"""Write the file that a model server on another node keeps on shared storage: its URL and its heartbeat."""

from __future__ import annotations

import json
import os
from pathlib import Path

VARIABLE = "LLM_JUDGE_SERVER_URL"


def write(path: Path, url: object, written: float, variable: str = VARIABLE) -> Path:
    """Write the file as a stack does: atomically, and readable only for its owner. Return its path.

    Args:
        path: path of the file.
        url: URL of the server.
        written: time of the heartbeat, in seconds since the epoch.
        variable: variable whose value is the URL.
    """
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps({"version": 1, "written": written, "servers": {variable: url}}))
    os.replace(new, path)
    return path
