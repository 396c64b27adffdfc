"""Prepare files for containers: the user's files, which are mounted read-only, and files with keys and passwords."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Mapping
from pathlib import Path

from services.gateway import tls
from services.stack.rundir import RunDir
from services.stack.services_table import SERVICES
from services.stack.settings import SECRETS, USERS_FILES, Settings
from services.up import model_servers, named_judges

READERS = ("rules", "worker")
"""Services that read the user's files."""
TARGET = "/etc/rewardstack"
SERVER = "server"
"""Redis user of the stack's own services."""


def map_user_files(settings: Settings) -> tuple[dict[str, str], dict[str, Path]]:
    """Map the user's files to paths in containers: reward functions, routes, and prompt templates of judges.

    Returns:
        The values of the settings that name files, with paths in the containers instead; and the files on this machine,
        by path in the containers.

    Raises:
        StackError: a file is missing or unreadable; the message names the setting.
    """
    values, files = {}, {}
    for setting in USERS_FILES:
        targets = []
        for number, file in enumerate(settings.files(setting)):
            # Keep the file name, because its suffix matters. Separate folders avoid collisions.
            targets.append(f"{TARGET}/{setting.lower()}-{number}/{file.name}")
            files[targets[-1]] = file
            if setting == "REWARDSTACK_ROUTES":
                folder = posixpath.dirname(targets[-1])
                for name in named_judges.templates(file):
                    files[posixpath.normpath(posixpath.join(folder, name))] = (file.parent / name).resolve()
        values[setting] = os.pathsep.join(targets)
    return values, files


def write_secrets(settings: Settings, run: RunDir) -> None:
    """Write a file for each secret to a directory that only its owner can access.

    Unset secrets get empty files, except TLS files and keys of external judges, whose files are removed.
    """
    run.secrets.mkdir(mode=0o700, exist_ok=True)
    run.secrets.chmod(0o700)
    contents = secret_files(settings, run)
    for name, text in contents.items():
        file = run.secrets / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        # The users in the containers must be able to read the file. The directory keeps other users out.
        file.chmod(0o644)
    optional = {*tls.FILES, *(file.name for file in run.secrets.glob(named_judges.key_file("*")))}
    for name in optional - contents.keys():
        (run.secrets / name).unlink(missing_ok=True)


def secret_files(settings: Settings, run: RunDir) -> Mapping[str, str]:
    """Return the text of the file of each secret, by file name."""
    values = {**{name: settings[name] for name in SECRETS}, **model_servers.keys(settings)}
    contents = {name.lower(): value for name, value in values.items()} | {"hf_token": os.environ.get("HF_TOKEN", "")}
    for service in ("cache", "queue"):
        own = _generated(f"{service}_server_password", run)
        url = f"redis://{SERVER}:{own}@{service}:{SERVICES[service].port}/0"
        contents |= {f"{service}_server_password": own, f"reward_{service}_url": url}
    if not settings["CODE_SANDBOX_URL"] and not settings["CODE_SANDBOX_API_KEY"]:
        contents |= {"code_sandbox_api_key": _generated("code_sandbox_api_key", run)}
    keys = {named_judges.key_file(name): key for name, key in named_judges.keys(settings).items()}
    return {**contents, **keys, **tls.contents(settings)}


def _generated(name: str, run: RunDir) -> str:
    """Return a generated password or key, which stays the same until its file is removed."""
    file = run.secrets / name
    return (file.read_text(encoding="utf-8") if file.is_file() else "") or secrets.token_hex(32)
