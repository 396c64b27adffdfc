"""What a command names of this machine's files, and what links among them lead to, to be bound into its image."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from services.stack.rundir import ROOT

WITHIN = re.compile(r"""(?<![^="'\s])/[^"',\s]+""")
"""A path in an argument: of `--flag=/path`, `name=/path` or JSON."""


def named(arguments: Iterable[str]) -> list[Path]:
    """The folders and files that arguments name by absolute paths, and what links in these folders lead to.

    A model as a hub's client keeps it is a folder of links to files elsewhere in its cache.
    """
    found = dict[Path, None]()
    for argument in arguments:
        for path in map(Path, [argument] if argument.startswith("/") else WITHIN.findall(argument)):
            if os.path.isdir(path):
                found |= dict.fromkeys([path, *_led_to(path)])
            elif os.path.isfile(path):
                found[path] = None
    return [*found]


def absolute(argument: str) -> str:
    """An argument, or the value behind its `=`, that names a file by a path from the root of the tree on."""
    before, equals, value = argument.rpartition("=")
    return f"{before}{equals}{ROOT / value}" if os.path.isfile(ROOT / value) else argument


def folder_or_file(file: Path) -> Path:
    """The folder of a file, for what lies beside it; of one in the home itself, or above it, the file alone."""
    return file if Path.home().resolve().is_relative_to(file.parent) else file.parent


def _led_to(folder: Path) -> list[Path]:
    """What links in a folder, and in the folders in it, lead to, and where these are links in turn, each of them."""
    inner = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
    links = [entry for one in (folder, *inner) for entry in one.iterdir() if entry.is_symlink()]
    bound = [folder]
    while links:
        link = links.pop()
        hop = Path(os.path.normpath(link.parent / os.readlink(link)))
        if not hop.exists():
            continue
        if not any(hop.is_relative_to(one) for one in bound):
            bound.append(hop if hop.is_dir() else folder_or_file(hop))
        if hop.is_symlink() and hop not in bound:
            links.append(hop)
    return bound[1:]
