"""Store keys and passwords of a stack in files in its run directory, so that no command line contains them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Container
from pathlib import Path

from services.stack.rundir import RunDir

KEY = "run_key"
"""File with the random key of the run directory, from which passwords and digests of secrets are derived."""


class Secrets:
    """The secrets of one run directory. They are kept in memory until `write` is called.

    Args:
        run: run directory of the stack.
    """

    def __init__(self, run: RunDir) -> None:
        self.folder = run.secrets
        file = self.folder / KEY
        self._key = file.read_text(encoding="utf-8") if file.is_file() else secrets.token_hex(32)
        self._contents = {KEY: self._key}

    def add(self, name: str, text: str) -> Path:
        """Add a secret, and return the path of the file that `write` will create."""
        self._contents[name] = text
        return self.folder / name

    def generate(self, name: str) -> str:
        """Return a generated password, which does not change until the run directory is removed."""
        return hmac.new(self._key.encode(), name.encode(), hashlib.sha256).hexdigest()

    def digest(self, name: str) -> str:
        """Return a keyed digest of a secret, which reveals nothing about the secret without the key."""
        return self.generate(f"{name}={self._contents[name]}")[:16]

    def write(self) -> None:
        """Write the secrets that have changed, and remove the files of secrets that were not added."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.folder.chmod(0o700)
        self._remove_others(self._contents)
        for name, text in self._contents.items():
            file = self.folder / name
            file.touch(mode=0o600)
            if file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")

    def remove(self) -> None:
        """Remove all secrets except the key."""
        self._remove_others([KEY])

    def _remove_others(self, names: Container[str]) -> None:
        for file in self.folder.glob("*"):
            if file.name not in names:
                file.unlink()
