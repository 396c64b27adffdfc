"""Has the gateway follow model servers of other nodes: `python -m services.up.native.following RUN_DIR`.

supervisord starts it, and it listens to supervisord's clock: every five seconds it looks into the folders that
RUN_DIR/programs/following.json names, and where other servers live than before, nginx is told to take up a file anew.
Its earlier processes finish what they have begun.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from services.stack import template
from services.stack.errors import StackError
from services.stack.refusal import refusal
from services.stack.rundir import RunDir
from services.up.native.events import listen, log
from services.up.native.replicas import Replicas
from services.up.native.supervision import Supervision

NAME = "following"


@dataclass(frozen=True)
class Upstream:
    """The servers of a service as the gateway has them.

    Args:
        file: of the gateway, which lists them.
        text: of this file, with the variable in place of a server.
        variable: that stands for a server.
        own: servers of this stack itself.
        nobody: stands in the file where there is no server at all, for nginx insists on one.
        replicas: the others.
    """

    file: Path
    text: str
    variable: str
    own: Sequence[str]
    nobody: str
    replicas: Replicas

    def update(self) -> str:
        """Write the file where it is not as it should be; returns what is new in words, empty where nothing is."""
        alive = self.replicas.alive()
        wanted = template.fill_text(self.text, {self.variable: [*self.own, *alive] or [self.nobody]})
        if self.file.read_text(encoding="utf-8") == wanted:
            return ""
        template.write({f"{self.file.name}.new": wanted}, self.file.parent)
        os.replace(f"{self.file}.new", self.file)
        return f"{self.replicas.folder}: {', '.join(alive) or 'nobody'}"


@dataclass
class Following:
    """Keeps the gateway's files as the folders are.

    Args:
        run: directory of the stack.
        upstreams: the services whose servers come and go.
    """

    run: RunDir
    upstreams: Sequence[Upstream]
    _owed: bool = False
    """Whether the gateway has yet to take up what is written."""

    def look(self) -> None:
        """Have the gateway take up what has changed since; what fails is tried again at the next look."""
        try:
            for upstream in self.upstreams:
                if change := upstream.update():
                    self._owed = True
                    log(change)
            if self._owed:
                Supervision(self.run).reload_gateway()
                self._owed = False
        except (StackError, OSError) as error:
            log(str(refusal(error)))
        except psutil.Error as error:
            log(f"the gateway is starting: {error}")


def main(folder: str) -> None:
    """Listen until supervisord ends."""
    run = RunDir(folder)
    described = json.loads(run.program(NAME).read_text(encoding="utf-8"))
    following = Following(run, [_upstream(run, one) for one in described])
    listen(lambda _: following.look())


def _upstream(run: RunDir, described: Mapping[str, Any]) -> Upstream:
    file = run.path / described["file"]
    # Of a follower that is started anew: whom the gateway has is left with it for the time of a heartbeat.
    listed = re.split(r"[\s;]+", file.read_text(encoding="utf-8"))
    return Upstream(
        file,
        described["text"],
        described["variable"],
        described["own"],
        described["nobody"],
        Replicas(Path(described["folder"]), described["url"], log, listed=frozenset(listed)),
    )


if __name__ == "__main__":
    main(sys.argv[1])
