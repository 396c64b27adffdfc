"""A copy of the tree with ports of its own, so that these tests never meet a stack that runs beside them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from services.stack.settings import SETTINGS
from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    *(".env", "Makefile", "client", "cli", "verifier", "constraints.txt", "examples", "helm", "services"),
    *(path.name for path in ROOT.glob("compose*.yaml")),
)
COMMAND_SECONDS = 280
PORTS = ("REWARD_PORT", "PAGE_PORT", "JUDGE_PORT", "EMBEDDING_PORT")


class Tree:
    """A copy of the project.

    Args:
        path: where it is made.
        seconds: that a command may take.
    """

    def __init__(self, path: Path, seconds: float = COMMAND_SECONDS) -> None:
        self.path = path
        self._seconds = seconds
        path.mkdir()
        self.environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        self.environment |= {name: str(free_port()) for name in PORTS}
        # The model servers have tests of their own; here they would take minutes.
        self.environment |= {"JUDGE": "off", "EMBEDDING": "off", "STACK": "native"}
        self.environment |= {"UP_TIMEOUT": "240"}  # a machine may have other work
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, path / name)  # with the bytecode, so that nothing is compiled again
            else:
                shutil.copy(source, path / name)

    @property
    def url(self) -> str:
        """Of the gateway."""
        return f"http://127.0.0.1:{self.environment['REWARD_PORT']}"

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the stack as the Makefile does, to its end; stderr comes with stdout."""
        with self.start(*arguments, **environment) as process:
            shown, _ = process.communicate(timeout=self._seconds)
        return subprocess.CompletedProcess(process.args, process.returncode, shown)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start one."""
        return subprocess.Popen(
            [sys.executable, "-m", "services.up", *arguments],
            cwd=self.path,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # What runs tests in the background may have Ctrl-C ignored, which children inherit.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
