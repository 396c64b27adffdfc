"""Prepare the stack for a node with other users: free ports, generated keys, a run directory on a local file system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from services.stack import ports
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import ROOT, RunDir, Running
from services.stack.secrets import KEY, Secrets
from services.stack.settings import SETTINGS, Settings
from services.up.model_servers import SERVERS, is_external
from services.up.summary import URL_KEYS

MOUNTS = Path("/proc/self/mountinfo")
SHARED = {
    *("9p", "afs", "beegfs", "ceph", "ceph-fuse", "cifs", "glusterfs", "gpfs", "lustre"),
    *("nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3", "sshfs", "wekafs"),
}
"""Types of file systems that several machines can share."""


def choose_ports(settings: Settings, running: Running | None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings with free ports, because another user's stack may hold the default ports.

    Ports that the user has set and ports of a running stack do not change.
    """
    result = Settings(settings)
    for name in ports.GATEWAY.values():
        if running and name in running.ports:
            result[name] = str(running.ports[name])
        elif not environ.get(name) and settings[name] == SETTINGS[name].default:
            result[name] = str(_choose_port(name, result))
    return result


def _choose_port(name: str, settings: Settings) -> int:
    default = settings.number(name)
    if settings["FREE_PORTS"] == "on":
        reason = "FREE_PORTS=on"
    elif owner := ports.port_owner(name, settings["BIND_ADDRESS"], default):
        reason = f"{default} is taken by {owner.description}"
    else:
        return default
    port = ports.find_free(settings["BIND_ADDRESS"])
    say(f"{name}={port}: {reason}")
    return port


def add_keys(settings: Settings, run: RunDir) -> Settings:
    """Return the settings with a key for each server of the stack, because other users can reach the node's loopback.

    If KEYS_DIR is set, the keys are read from files. Otherwise, a key that the user has set is kept, and the other keys
    are derived from a secret in the run directory. The keys of external servers never change.

    Raises:
        StackError: a file with a key is not readable.
    """
    secrets = Secrets(run)
    folders = {server.url_setting: server.folder_setting for server in SERVERS if not is_external(server, settings)}
    keys = {}
    for url, folder in {"REWARD_SERVER_URL": "", **folders}.items():
        name = URL_KEYS[url][1]
        if settings["KEYS_DIR"]:
            keys[name] = _read_key(Path((folder and settings[folder]) or settings["KEYS_DIR"]))
        else:
            keys[name] = settings[name] or secrets.generate(name.lower())
    return Settings({**settings, **keys})


def _read_key(folder: Path) -> str:
    try:
        return (ROOT / folder / "key").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise StackError(f"KEYS_DIR: {explain_os_error(error)}", "name a folder with a readable file `key`") from error


def keep_secret(run: RunDir) -> None:
    """Save the secret from which keys are derived, so that the keys do not change."""
    if not (run.secrets / KEY).is_file():
        Secrets(run).write()


def require_local(path: Path) -> None:
    """Check that a folder, which may not exist yet, is on a local file system, where Unix sockets work.

    Raises:
        StackError: the folder is on a file system that machines share.
    """
    kind = _file_system(path.resolve())
    if kind in SHARED:
        raise StackError(
            f"RUN_DIR: {path} is on a file system that machines share ({kind}), where sockets do not work",
            "name a folder of this node, such as one in /tmp; images, models and the endpoints file may be shared",
        )


def _file_system(path: Path) -> str:
    """Return the file system type of a path. If there are several mounts on one path, the last mount is used."""
    best, kind = -1, ""
    for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        mounted = Path(before.split()[4].replace("\\040", " "))
        if path.is_relative_to(mounted) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), after.split()[0]
    return kind.removeprefix("fuse.")
