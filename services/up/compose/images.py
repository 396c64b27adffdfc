"""What the images of the model servers start."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

from services.up.compose.engine import Engine, ask

PROGRAMS = {"judge": "VLLM_PROGRAM", "embedding": "TEI_PROGRAM"}
"""The settings that say so, for `compose.keys.yaml`."""


def programs(engine: Engine, services: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What each image starts by itself, by the setting; an image that says nothing and a user's own word are left out.

    Args:
        engine: that has the images.
        services: as Compose reads them.

    Raises:
        StackError: the engine does not have an image.
    """
    found = {}
    for service, setting in PROGRAMS.items():
        if service in services and setting not in os.environ:
            shown = ask(
                engine.docker, "image", "inspect", "--format={{json .Config.Entrypoint}}", services[service]["image"]
            )
            if entrypoint := json.loads(shown):
                found[setting] = shlex.join(entrypoint)
    return found
