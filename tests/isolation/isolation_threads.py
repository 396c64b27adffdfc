"""An entry that starts a thread when it is imported."""

from __future__ import annotations

import threading
import time
from typing import Any

threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def run(task: dict[str, Any]) -> dict[str, Any]:
    """The task."""
    return task
