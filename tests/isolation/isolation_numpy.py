"""An entry whose libraries would start threads."""

from __future__ import annotations

import os
from typing import Any

import numpy


def run(task: dict[str, Any]) -> dict[str, Any]:
    """How many threads the process has that this one was forked from."""
    return {"value": len(os.listdir(f"/proc/{os.getppid()}/task")), "version": numpy.__version__}
