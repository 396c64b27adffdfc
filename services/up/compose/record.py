"""What `make up` started as containers, kept in the run directory for the commands that follow."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from services.stack.rundir import RunDir


@dataclass(frozen=True)
class Composed:
    """What was started.

    Args:
        project: its name at the engine.
        services: names of them.
        up: False once it was stopped; its volumes stay until `make clean`.
    """

    project: str
    services: list[str]
    up: bool = True


def save(run: RunDir, composed: Composed) -> None:
    """Save what was started."""
    _file(run).write_text(json.dumps(asdict(composed)), encoding="utf-8")


def load(run: RunDir) -> Composed | None:
    """Return what was started last; None where nothing ever was.

    Raises:
        OSError: the run directory cannot be read.
    """
    try:
        return Composed(**json.loads(_file(run).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _file(run: RunDir) -> Path:
    return run.path / "compose.json"
