"""The user's own files in containers: reward functions, routes, judges' templates and questions, read-only."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.stack.settings import USERS_FILES, Settings
from services.up import named_judges

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
        StackError: one is not there, or cannot be read; names the setting.
    """
    named, files = {}, {}
    for setting in USERS_FILES:
        inside = []
        for number, file in enumerate(settings.files(setting)):
            # Its suffix says how it is read; a folder of its own keeps two files of one name apart.
            inside.append(f"{INSIDE}/{setting.lower()}-{number}/{file.name}")
            files[inside[-1]] = file
            if setting == "REWARDSTACK_ROUTES":
                folder = posixpath.dirname(inside[-1])
                for name in named_judges.templates(file):
                    files[posixpath.normpath(posixpath.join(folder, name))] = (file.parent / name).resolve()
        named[setting] = os.pathsep.join(inside)
    return Mounts(named, files)
