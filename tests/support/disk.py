"""Mount a file system in memory with a size that a test chooses."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

BLOCK = b"\0" * 4096


class Disk:
    """A tmpfs that is mounted when it is created, and unmounted when its `with` block ends.

    Args:
        path: empty folder to mount it on.
        size: size as an option of `mount`, such as `12m`.

    Raises:
        OSError: mounting is not allowed.
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
        # `--lazy` unmounts it even if a process still uses it.
        self._run("umount", "--lazy", str(self.path))

    def enlarge(self, size: str) -> None:
        """Change its size and keep its files."""
        self._run("mount", "-o", f"remount,size={size}", str(self.path))

    def fill(self) -> None:
        """Fill all free blocks."""
        with self._filling.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(BLOCK)

    @staticmethod
    def _run(*command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr.strip())
