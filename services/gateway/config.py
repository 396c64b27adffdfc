"""The gateway's configuration where the servers behind it are a list; containers fill in the same templates by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.gateway.tls import Tls
from services.stack.rundir import ROOT
from services.stack.settings import Settings
from services.stack.template import fill

TEMPLATES = ROOT / "services/gateway"
WITH_TLS = " ssl; include tls.conf"
"""What follows the address and port of a server that speaks TLS."""
TRIES = 2
"""Servers that a request is sent to where the first breaks."""


def files(
    servers: Mapping[str, Sequence[str]], settings: Settings, listen: Mapping[str, str], tls: Tls | None = None
) -> dict[str, str]:
    """The text of each file, by name; nginx is started with their folder as its prefix and `-c nginx.conf`.

    Args:
        servers: where those of each service listen, as nginx writes it, such as `unix:/run/judge.sock`.
        settings: of the stack.
        listen: address and port of the gateway by service.
        tls: that it speaks there; None for none.
    """
    values: dict[str, str | Sequence[str]] = {
        **settings,
        # nginx gives up root's rights unless told otherwise, and could then not read a private directory.
        "NGINX_USER": "user root;" if os.geteuid() == 0 else "",
        "SERVICES": "\n    ".join(f"include {service}.conf;" for service in servers),
        "TRIES": str(TRIES),
        "KEY_QUESTION": "/key" if settings["REWARD_SERVER_API_KEYS"] else "off",
        **({"TLS_FOLDER": str(tls.folder), "TLS_VERSION": tls.version} if tls else {}),
        **{f"LISTEN_{service.upper()}": listen[service] + (WITH_TLS if tls else "") for service in servers},
        **{f"{service.upper()}_SERVER": listed for service, listed in servers.items()},
    }
    names = ["nginx", "common", *servers, *(["tls"] if tls else [])]
    if "judge" in servers:
        names.append(f"judge-{settings['JUDGE_BALANCING']}")
    return {f"{name}.conf": fill(TEMPLATES / f"{name}.conf.template", values) for name in names}


def command(nginx: str, folder: Path) -> list[str]:
    """The command that starts the gateway.

    Args:
        nginx: the program.
        folder: that holds its files.
    """
    return [nginx, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
