"""Write the file that `REWARDSTACK_ENDPOINTS` names, in the way a stack does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


def write_endpoints(path: Path, servers: Mapping[str, str] = MappingProxyType({}), *, age: float = 0.0) -> None:
    """Replace the file atomically.

    Args:
        path: path of the file.
        servers: URLs by variable, such as LLM_JUDGE_SERVER_URL.
        age: age of the heartbeat in seconds.
    """
    write_text(path, json.dumps({"version": 1, "written": time.time() - age, "servers": {**servers}}))


def write_text(path: Path, text: str) -> None:
    """Replace the file atomically with any text, for example a broken one."""
    new = path.with_name(f"{path.name}.new")
    new.touch(0o600)
    new.write_text(text)
    os.replace(new, path)
