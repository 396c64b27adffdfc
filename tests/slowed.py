"""Run a command beside four busy processes per core, as on a machine that runs other things: `make slowed`."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

BUSY_PER_CORE = 4


def main(command: list[str]) -> int:
    """Run the command and return its exit status."""
    count = BUSY_PER_CORE * (os.cpu_count() or 1)
    busy = [multiprocessing.Process(target=_work, args=(os.getpid(),), daemon=True) for _ in range(count)]
    for process in busy:
        process.start()
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for process in busy:
            process.kill()


def _work(parent: int) -> None:
    """Use a core until the parent process ends."""
    while os.getppid() == parent:
        sum(range(100_000))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
