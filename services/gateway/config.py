"""Render nginx's configuration for the gateway from templates.

In containers, nginx's image fills in the same templates itself, with DNS names instead of addresses.
"""

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
"""Suffix of the `listen` address of an nginx server that uses TLS."""
PAGE = "page"
"""Name of the gateway's port for the status page. The gateway forwards requests for the page to the reward server."""
TRIES = 2
"""Maximum number of servers that a request is sent to: under overload, more tries would multiply the load."""
AUTH_REQUEST_URIS = {
    "RULES_AUTH_REQUEST_URI": "REWARD_SERVER_API_KEYS",
    "JUDGE_AUTH_REQUEST_URI": "LLM_JUDGE_SERVER_API_KEY",
    "EMBEDDING_AUTH_REQUEST_URI": "EMBEDDING_SERVER_API_KEY",
}
"""Template variables that say whether a port requires an API key, each with the setting that has the port's keys."""
NO_SERVER = "unix:/nonexistent/server.sock"
"""Placeholder for a service without servers. nginx requires at least one server; it reports this one as unreachable."""
NO_PATHS: Mapping[str, str] = MappingProxyType({})


def files(
    servers: Mapping[str, Sequence[str]],
    settings: Settings,
    listen: Mapping[str, str],
    tls: Tls | None = None,
    paths: Mapping[str, str] = NO_PATHS,
) -> dict[str, str]:
    """Return the text of each configuration file by name.

    The caller writes the files to a folder, and starts nginx with `-p FOLDER -c nginx.conf`.

    Args:
        servers: addresses of each service's servers in nginx syntax, such as `unix:/run/judge.sock`.
        settings: settings of the stack.
        listen: address and port of the gateway by service; named judges use the port of the default judge.
        tls: certificate and key; None for plain HTTP.
        paths: additional paths at the judge's port, such as `/judges/NAME`, each with the service behind it.
    """
    services = [service for service in servers if service in listen]
    included = [*services, *([PAGE] if "rules" in services else [])]
    values: dict[str, str | Sequence[str]] = {
        **settings,
        # By default, nginx drops root privileges, and could then not read the private run directory.
        "NGINX_USER": "user root;" if os.geteuid() == 0 else "",
        "SERVICES": "\n    ".join(f"include {name}.conf;" for name in included),
        "TRIES": str(TRIES),
        **auth_request_uris(settings),
        **({"TLS_FOLDER": str(tls.folder), "TLS_VERSION": tls.version} if tls else {}),
        **{f"LISTEN_{name.upper()}": listen[name] + (WITH_TLS if tls else "") for name in included},
        **{variable(service): servers[service] for service in services},
        "JUDGE_UPSTREAM": "judge",
        **model_paths(paths, servers, settings),
    }
    names = ["nginx", "common", "open", "browsers", "large_body", "page_root", *included, *(["tls"] if tls else [])]
    if "judge" in services:
        names.append(balancing(settings))
    return {f"{name}.conf": fill(_template(name), values) for name in names}


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.conf.template").read_text(encoding="utf-8")


def auth_request_uris(settings: Settings) -> dict[str, str]:
    """Return the values of the variables in `AUTH_REQUEST_URIS`.

    The value is the URI that checks keys if the port requires a key, else `off`.
    """
    return {variable: "/key" if settings[key] else "off" for variable, key in AUTH_REQUEST_URIS.items()}


def model_paths(paths: Mapping[str, str], servers: Mapping[str, Sequence[str]], settings: Settings) -> dict[str, str]:
    """Return the values of the template variables for the additional paths at the judge's port.

    Args:
        paths: service by path, such as `/judges/NAME`; the service is the default judge or a separate server.
        servers: addresses of each service's servers in nginx syntax.
        settings: settings of the stack.
    """
    template = _template(balancing(settings))
    separate = dict.fromkeys(service for service in paths.values() if service != "judge")
    return {
        "MODEL_PATHS": "\n    ".join(f"{path} {service};" for path, service in paths.items()),
        "MODEL_UPSTREAMS": "".join(
            fill(template, {**settings, "JUDGE_UPSTREAM": service, "JUDGE_SERVER": servers[service]})
            for service in separate
        ),
    }


def balancing(settings: Settings) -> str:
    """Return the name of the configuration file with the judge's load balancing method."""
    return f"judge-{settings['JUDGE_BALANCING']}"


def variable(service: str) -> str:
    """Return the template variable for the servers of a service."""
    return f"{service.upper()}_SERVER"


def servers_file(service: str, settings: Settings) -> str:
    """Return the name of the configuration file that lists the servers of a service."""
    return f"{balancing(settings) if service == 'judge' else service}.conf"


def command(nginx: str, folder: Path) -> list[str]:
    """Return the command that starts the gateway with the configuration files of a folder."""
    return [nginx, "-p", str(folder), *SERVICES["gateway"].command[1:]]
