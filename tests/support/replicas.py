"""What a model server on another node keeps on shared storage: its endpoints and its heartbeat."""

from __future__ import annotations

import json
import os
from pathlib import Path

VARIABLE = "LLM_JUDGE_SERVER_URL"


def write(path: Path, url: object, written: float, variable: str = VARIABLE) -> Path:
    """Write the file as a stack does: whole or not at all, and for its owner alone.

    Args:
        path: of the file.
        url: of the server.
        written: the heartbeat.
        variable: under which it stands.
    """
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps({"version": 1, "written": written, "servers": {variable: url}}))
    os.replace(new, path)
    return path
