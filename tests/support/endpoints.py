"""The file that `REWARDSTACK_ENDPOINTS` names, as a stack writes it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


def write_endpoints(path: Path, servers: Mapping[str, str] = MappingProxyType({}), *, age: float = 0.0) -> None:
    """Replaces the file as a whole.

    Args:
        path: of the file.
        servers: what it names, by variable.
        age: of its heartbeat, in seconds.
    """
    write_text(path, json.dumps({"version": 1, "written": time.time() - age, "servers": {**servers}}))


def write_text(path: Path, text: str) -> None:
    """The same with any text."""
    new = path.with_name(f"{path.name}.new")
    new.touch(0o600)
    new.write_text(text)
    os.replace(new, path)
