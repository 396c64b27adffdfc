"""A disk of a size that a test chooses, in memory."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

BLOCK = b"\0" * 4096


class Disk:
    """A file system of its own, as long as it is entered.

    Args:
        path: an empty folder, on which it is mounted.
        size: such as `12m`.

    Raises:
        OSError: it may not be mounted.
    """

    def __init__(self, path: Path, size: str) -> None:
        self.path = path
        self._filling = path / "filling"
        self._run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))

    def __enter__(self) -> Disk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whatever still stands in it.
        self._run("umount", "--lazy", str(self.path))

    def enlarge(self, size: str) -> None:
        """Give it another size, with all that is on it."""
        self._run("mount", "-o", f"remount,size={size}", str(self.path))

    def fill(self) -> None:
        """Leave no block of it free."""
        with self._filling.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(BLOCK)

    @staticmethod
    def _run(*command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr.strip())
