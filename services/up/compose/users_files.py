"""The user's own files in containers: reward functions, routes and questions, read-only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.stack.settings import USERS_FILES, Settings

READERS = ("rules", "worker")
"""The services that read them."""
INSIDE = "/etc/rewardstack"


@dataclass(frozen=True)
class Mounts:
    """What is mounted.

    Args:
        settings: those that name files, with their paths in the containers.
        files: paths on this machine by those in the containers.
    """

    settings: Mapping[str, str]
    files: Mapping[str, Path]


def mounts(settings: Settings) -> Mounts:
    """Where each of the user's files will be.

    Raises:
        StackError: one is not there; names the setting.
    """
    named, files = {}, {}
    for setting in USERS_FILES:
        inside = []
        for number, file in enumerate(settings.files(setting)):
            # Its suffix says how it is read; a folder of its own keeps two files of one name apart.
            inside.append(f"{INSIDE}/{setting.lower()}-{number}/{file.name}")
            files[inside[-1]] = file
        named[setting] = os.pathsep.join(inside)
    return Mounts(named, files)
