"""Generate supervisord.conf, and the description of each program that `launch` reads."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from services.stack.rundir import ROOT, RunDir
from services.up.native.programs import IN_IMAGE, Program, digest
from services.up.native.supervisor import CONFIGURATION, WATCH, sections

LAUNCH = (sys.executable, "-m", "services.up.native.launch")
START_SECONDS = 2
"""Seconds after which a running process counts as started."""
START_RETRIES = 30
"""Number of restarts, with growing delays, before supervisord marks a program FATAL. `watch` then starts it again."""
FOREVER = 1_000_000

Sections = dict[str, dict[str, str]]


def files(programs: Sequence[Program], run: RunDir) -> dict[str, str]:
    """Return the text of supervisord.conf and of each program's description, by file name."""
    sections = _supervisord(run)
    for program in programs:
        sections[f"program:{program.name}"] = _section(program, run)
    descriptions = {f"programs/{program.name}.json": _description(program) for program in programs}
    return {CONFIGURATION: _text(sections), **descriptions}


def has_changed(program: Program, run: RunDir) -> bool:
    """Return whether a program differs from the current supervisord.conf. `make up` restarts changed programs."""
    return sections(run).get(f"program:{program.name}") != _section(program, run)


def changes(program: Program, run: RunDir) -> list[str]:
    """Return the names of the variables and versions that have changed since the description was last written."""
    try:
        before = json.loads(run.program(program.name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    now = program.description
    names = ["its command"] if before.get("command") != now["command"] else []
    for part in ("environment", "versions"):
        old, new = before.get(part, {}), now[part]
        changed = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
        names += (name.removeprefix(IN_IMAGE).removesuffix("_FILE") for name in changed)
    return sorted(set(names)) or ["how it is supervised"]


def _supervisord(run: RunDir) -> Sections:
    """Return the sections for supervisord itself.

    supervisord must not rotate logs, because it exits if the disk is full while it closes a file. `watch` rotates them.
    """
    return {
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "identifier": "rewardstack",
            "directory": str(ROOT),
            "logfile": str(run.log("supervisord")),
            "logfile_maxbytes": "0",
            "pidfile": str(run.path / "supervisord.pid"),
            "childlogdir": str(run.logs),
            "umask": "077",
            # Without this option, supervisord also runs as root, but logs a critical message about it.
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "unix_http_server": {"file": str(run.supervisor_socket), "chmod": "0600"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
    }


def _section(program: Program, run: RunDir) -> dict[str, str]:
    retries = FOREVER if program.name == WATCH else START_RETRIES
    return {
        # Escape %, which supervisord would expand.
        "command": shlex.join([*LAUNCH, str(run.program(program.name))]).replace("%", "%%"),
        # The digest makes supervisord notice changes of the description file, which it does not read itself.
        "environment": f'DIGEST="{digest([_description(program)])}"',
        "priority": str(program.start_order),
        "startsecs": str(START_SECONDS),
        "startretries": str(retries),
        "autorestart": "true",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_grace),
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": str(run.log(program.name)),
        "stdout_logfile_maxbytes": "0",
    }


def _description(program: Program) -> str:
    return json.dumps(program.description, indent=1)


def _text(sections: Mapping[str, Mapping[str, str]]) -> str:
    parts = ["; Written by `make up`: changes here are lost.\n"]
    for name, values in sections.items():
        parts.append("".join([f"\n[{name}]\n", *(f"{key} = {value}\n" for key, value in values.items())]))
    return "".join(parts)
