"""The gateway's configuration where the servers behind it are a list; containers fill in the same templates by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from services.gateway.tls import Tls
from services.stack.rundir import CHART_FILES
from services.stack.services_table import SERVICES
from services.stack.settings import Settings
from services.stack.template import fill

TEMPLATES = CHART_FILES / "gateway"
WITH_TLS = " ssl; include tls.conf"
"""What follows the address and port of a server that speaks TLS."""
PAGE = "page"
"""The port of the status page, which the reward server serves."""
TRIES = 2
"""Servers that a request is sent to where the first breaks."""
AUTH_REQUEST_URIS = {
    "RULES_AUTH_REQUEST_URI": "REWARD_SERVER_API_KEYS",
    "JUDGE_AUTH_REQUEST_URI": "LLM_JUDGE_SERVER_API_KEY",
    "EMBEDDING_AUTH_REQUEST_URI": "EMBEDDING_SERVER_API_KEY",
}
"""By the variable in the templates that says whether a port asks for a key: the setting that holds its keys."""
NOBODY = "unix:/nonexistent/server.sock"
"""Where a service has no server yet: nginx insists on one, finds it gone, and says so."""
NO_JUDGES: Mapping[str, str] = MappingProxyType({})


def files(
    servers: Mapping[str, Sequence[str]],
    settings: Settings,
    listen: Mapping[str, str],
    tls: Tls | None = None,
    judges: Mapping[str, str] = NO_JUDGES,
) -> dict[str, str]:
    """The text of each file, by name; nginx is started with their folder as its prefix and `-c nginx.conf`.

    Args:
        servers: where those of each service listen, as nginx writes it, such as `unix:/run/judge.sock`.
        settings: of the stack.
        listen: address and port of the gateway by service; a named judge's has none of its own.
        tls: that it speaks there; None for none.
        judges: the service that each named judge is.
    """
    services = [service for service in servers if service in listen]
    included = [*services, *([PAGE] if "rules" in services else [])]
    values: dict[str, str | Sequence[str]] = {
        **settings,
        # nginx gives up root's rights unless told otherwise, and could then not read a private directory.
        "NGINX_USER": "user root;" if os.geteuid() == 0 else "",
        "SERVICES": "\n    ".join(f"include {name}.conf;" for name in included),
        "TRIES": str(TRIES),
        **auth_request_uris(settings),
        **({"TLS_FOLDER": str(tls.folder), "TLS_VERSION": tls.version} if tls else {}),
        **{f"LISTEN_{name.upper()}": listen[name] + (WITH_TLS if tls else "") for name in included},
        **{variable(service): servers[service] for service in services},
        "JUDGE_UPSTREAM": "judge",
        **named_judges(judges, servers, settings),
    }
    names = ["nginx", "common", "open", "browsers", "page_root", *included, *(["tls"] if tls else [])]
    if "judge" in services:
        names.append(balancing(settings))
    return {f"{name}.conf": fill(TEMPLATES / f"{name}.conf.template", values) for name in names}


def auth_request_uris(settings: Settings) -> dict[str, str]:
    """Whether the port of each service asks for a key, by the variable in the templates."""
    return {variable: "/key" if settings[key] else "off" for variable, key in AUTH_REQUEST_URIS.items()}


def named_judges(judges: Mapping[str, str], servers: Mapping[str, Sequence[str]], settings: Settings) -> dict[str, str]:
    """What stands in the templates of judges by name, by the variable.

    Args:
        judges: the service that each is: the default judge's, or one of its own.
        servers: where those of each service listen, as nginx writes it.
        settings: of the stack.
    """
    template = TEMPLATES / f"{balancing(settings)}.conf.template"
    own = dict.fromkeys(service for service in judges.values() if service != "judge")
    return {
        "NAMED_JUDGES": "\n    ".join(f"/judges/{name} {service};" for name, service in judges.items()),
        "NAMED_JUDGE_UPSTREAMS": "".join(
            fill(template, {**settings, "JUDGE_UPSTREAM": service, "JUDGE_SERVER": servers[service]}) for service in own
        ),
    }


def balancing(settings: Settings) -> str:
    """The name of the file that says how a judge's requests find a replica."""
    return f"judge-{settings['JUDGE_BALANCING']}"


def variable(service: str) -> str:
    """What stands for a server of a service in the templates."""
    return f"{service.upper()}_SERVER"


def servers_file(service: str, settings: Settings) -> str:
    """The name of the file that lists the servers of a service."""
    return f"{balancing(settings) if service == 'judge' else service}.conf"


def command(nginx: str, folder: Path) -> list[str]:
    """Return the command that starts the gateway.

    Args:
        nginx: the program.
        folder: that holds its files.
    """
    return [nginx, "-p", str(folder), *SERVICES["gateway"].command[1:]]
