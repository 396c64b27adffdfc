"""Keys and passwords of a stack: a file each in its run directory, so that no command line holds one."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Container
from pathlib import Path

from services.stack.rundir import RunDir

KEY = "run_key"
"""A random text that stays with the run directory; what is generated, and what is told of a secret, follows from it."""


class Secrets:
    """The secrets of one run directory, kept in memory until they are written.

    Args:
        run: the directory.
    """

    def __init__(self, run: RunDir) -> None:
        self.folder = run.secrets
        kept = self.folder / KEY
        self._key = kept.read_text(encoding="utf-8") if kept.is_file() else secrets.token_hex(32)
        self._contents = {KEY: self._key}

    def add(self, name: str, text: str) -> Path:
        """Take one up; returns the file that will hold it."""
        self._contents[name] = text
        return self.folder / name

    def generate(self, name: str) -> str:
        """A password: the same one each time, until the run directory is removed."""
        return hmac.new(self._key.encode(), name.encode(), hashlib.sha256).hexdigest()

    def digest(self, name: str) -> str:
        """Changes when a secret does, and tells nothing of it to whoever has no key."""
        return self.generate(f"{name}={self._contents[name]}")[:16]

    def write(self) -> None:
        """Write each whose text is another one now, and remove what is none any more."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.folder.chmod(0o700)
        self._keep(self._contents)
        for name, text in self._contents.items():
            file = self.folder / name
            file.touch(mode=0o600)
            if file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")

    def remove(self) -> None:
        """Remove all but the key."""
        self._keep([KEY])

    def _keep(self, names: Container[str]) -> None:
        for file in self.folder.glob("*"):
            if file.name not in names:
                file.unlink()
