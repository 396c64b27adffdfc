"""Reload reward functions and routes, after a signal or when their files change (`RELOAD=on`, for development).

A forked process first tries to load them. If this succeeds, the server or worker reloads. Otherwise the old functions
stay active, and the log has the reason.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from rewardstack.errors import ConfigError
from rewardstack.routing.syntax import template_files
from rewardstack.settings import Settings as ClientSettings
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.fingerprint import OWN_PACKAGES
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings

POLL_SECONDS = 0.2
LOAD_SECONDS = 60
"""Timeout for loading the files and everything that they import, in seconds."""

KEPT = "reload failed: %s; the old reward functions stay active"
"""Log message if the files cannot be loaded."""
Load = Callable[[Settings], object]

log = logging.getLogger("rewardstack_rules.reload")


def load_evaluator(settings: Settings) -> Evaluator:
    """Return a new evaluator, which has loaded all files.

    Raises:
        ConfigError: a file cannot be used.
    """
    return Evaluator(settings, load_registry(settings.function_files))


class Reloader(threading.Thread):
    """Watches the files of reward functions, modules in the same folders, routes and prompt templates.

    Create the reloader before the server or worker loads the files, so that it detects changes during loading.

    Args:
        settings: settings that name the files.
        reload: makes the server or worker load the files again; called after a test load has succeeded.
        load: loads the files as the server or worker does, and raises ConfigError if one cannot be used.
    """

    def __init__(self, settings: Settings, reload: Callable[[], None], load: Load = load_evaluator) -> None:
        super().__init__(name="reload", daemon=True)
        self._settings, self._reload, self._load = settings, reload, load
        self._files, _ = try_to_load(settings, load)
        self._seen = _versions(self._files)

    def run(self) -> None:
        """Watch until the process ends."""
        files, seen = self._files, self._seen
        while True:
            time.sleep(POLL_SECONDS)
            if (now := _versions(files)) == seen:
                continue
            time.sleep(POLL_SECONDS)
            if _versions(files) != now:
                continue  # a file is still being written
            loaded, error = try_to_load(self._settings, self._load, files)
            files |= loaded
            seen = {**_versions(files), **now}
            if error:
                log.warning(KEPT, error)
            else:
                log.info("reload: reward functions or routes have changed")
                self._reload()


def _versions(files: Collection[Path]) -> dict[Path, tuple[int, int, int]]:
    """Return the modification time, size and inode of each file; omit missing files."""
    found = {}
    for file in files:
        with suppress(OSError):
            status = file.stat()
            found[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found


def try_to_load(settings: Settings, load: Load, known: Collection[Path] = ()) -> tuple[set[Path], str]:
    """Load all files in a forked process, so that this process stays unchanged.

    Args:
        settings: settings that name the files.
        load: as for `Reloader`.
        known: files of which this process may have loaded an earlier version.

    Returns:
        The files of reward functions and routes, and the error of loading them; the error is empty if there is none.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            signal.alarm(LOAD_SECONDS)
            os.write(writer, json.dumps(_load(settings, load, known)).encode() + b"\n")
        os._exit(0)
    os.close(writer)
    text = b""
    # Stop at the newline, and do not wait for the end of the pipe: a server process that was forked before `writer` was
    # closed here keeps its copy of `writer` open.
    while not text.endswith(b"\n") and select.select([reader], [], [], LOAD_SECONDS)[0]:
        if not (part := os.read(reader, 65_536)):
            break
        text += part
    os.close(reader)
    with suppress(ChildProcessError):  # gunicorn may already have reaped the child
        os.waitpid(child, 0)
    files, error = (
        json.loads(text)
        if text.endswith(b"\n")
        else ([], f"loading the files ended the process, or took more than {LOAD_SECONDS} s")
    )
    return {*map(Path, files)}, error


def _load(settings: Settings, load: Load, known: Collection[Path]) -> tuple[list[str], str]:
    for name, module in [*sys.modules.items()]:
        if Path(getattr(module, "__file__", None) or "/") in known:
            del sys.modules[name]
    loaded = {*sys.modules}
    error = ""
    files = {*settings.function_files}
    try:
        routes = [Path(file) for file in ClientSettings.from_env().routes_files]
        files |= {*routes}
        files |= {file.parent / name for file in routes for name in template_files(str(file))}
        load(settings)
    except ConfigError as why:
        error = str(why)
    folders = {file.parent for file in settings.function_files}
    # A reward function may be in a folder that contains a checkout of our packages, which are never reloaded.
    new = {name for name in sys.modules.keys() - loaded if name.partition(".")[0] not in OWN_PACKAGES}
    modules = (Path(getattr(sys.modules[name], "__file__", None) or "/") for name in new)
    files |= {file for file in modules if folders & {*file.parents} and "site-packages" not in file.parts}
    return [*map(str, files)], error
