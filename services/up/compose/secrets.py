"""Keys and passwords for containers: a file each, in a directory that only its owner can enter."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from services.gateway import tls
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up import named_judges


def folder(run: RunDir) -> Path:
    """Where the files are; the compose files name them."""
    return run.secrets


def write(settings: Settings, run: RunDir) -> None:
    """Write every file anew whose content is another one now; empty where there is no such key."""
    where = folder(run)
    where.mkdir(mode=0o700, exist_ok=True)
    where.chmod(0o700)
    password = settings["CACHE_PASSWORD"]
    own = _server_password(where) if password else ""
    contents = {
        **{named_judges.key_file(name): key for name, key in named_judges.keys(settings).items()},
        "cache_password": password,
        "cache_server_password": own,
        "embedding_server_api_key": settings["EMBEDDING_SERVER_API_KEY"],
        "grafana_admin_password": settings["GRAFANA_ADMIN_PASSWORD"],
        "hf_token": os.environ.get("HF_TOKEN", ""),
        "llm_judge_headers": settings["LLM_JUDGE_HEADERS"],
        "llm_judge_server_api_key": settings["LLM_JUDGE_SERVER_API_KEY"],
        "reward_cache_secret": settings["REWARD_CACHE_SECRET"],
        "reward_cache_url": f"redis://server:{own}@cache:6379/0" if password else "",
        "reward_server_api_keys": settings["REWARD_SERVER_API_KEYS"],
        **tls.contents(settings),
    }
    for name, text in contents.items():
        file = where / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        # The directory keeps other users out; in the containers other users than this one read the file.
        file.chmod(0o644)
    once = {*tls.FILES, *(file.name for file in where.glob(named_judges.key_file("*")))}
    for name in once - contents.keys():
        (where / name).unlink(missing_ok=True)


def _server_password(where: Path) -> str:
    """The cache's password for the stack's own services: the same one until the files are removed."""
    file = where / "cache_server_password"
    return (file.read_text(encoding="utf-8") if file.is_file() else "") or secrets.token_hex(32)
