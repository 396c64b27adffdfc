"""What the Helm chart has of the tables: descriptions of services, defaults of settings, and the schema of its values.

A line of `values.yaml` that ends in `# NAME` has the default of that setting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from rewardstack.routing.routes import RULES, builtin_routes
from rewardstack_settings.setting import Setting
from services.stack import ports
from services.stack.chart_page import page
from services.stack.services_table import SERVICES
from services.stack.settings_table import TABLE, read_by

CHART = "helm/rewardstack"
DEFAULT = re.compile(r"^(?P<line>.*: )\S.*(?P<name>  # (?P<setting>[A-Z_]+))$", re.M)
COMMON = "common"
"""The section with values that each service accepts too."""
POD_SECTIONS = ("rules", "worker", "gateway", "cache", "queue", "judge", "embedding")
CHOICES = {
    "device": ["gpu", "cpu"],
    "type": ["ClusterIP", "NodePort", "LoadBalancer"],
    "by": ["none", "hpa", "keda"],
    "imagePullPolicy": ["IfNotPresent", "Always", "Never"],
    "externalTrafficPolicy": ["Cluster", "Local"],
}
"""What the values of these names may be."""
AT_LEAST_ONE = frozenset({"min", "max", "cpu", "requests", "gpus", "startupSeconds"})
"""Numbers that may not be 0: whatever scales, one replica stays."""
METRICS_PORTS = {"gateway-metrics": 9113, "worker-metrics": 9100}
OPEN = frozenset({"resources", "dashboardLabels", "namespace"})
"""Maps that may hold more than their defaults."""
LABELS = frozenset(
    {
        *("annotations", "clients", "commonLabels", "dashboardLabels", "direct", "labels", "namespace", "nodeSelector"),
        *("podAnnotations", "podLabels"),
    }
)
"""Maps of strings."""
WORDS = frozenset({"program", "functions", "topologyKeys", "names"})
"""Lists of strings."""
NAMED = {"extraEnv": ["value"], "imagePullSecrets": [], "extraVolumes": [], "extraVolumeMounts": ["mountPath"]}
"""Lists of what has a name, and which fields of it are strings."""
HOST = r"^$|^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
PATTERNS = {
    "maxMemory": "^[0-9]+([kKmMgG]?[bB]?)$",
    "size": "^[0-9]+([kMGTPE]|[KMGTPE]i)?$",
    "sharedMemory": "^[0-9]+([kMGTPE]|[KMGTPE]i)?$",
    "ephemeralStorage": "^[0-9]+([kMGTPE]|[KMGTPE]i)?$",
    "resolver": r"^$|^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9a-fA-F:.]+\](:[0-9]+)?$",
    "rules": HOST,
    "judge": HOST,
    "embedding": HOST,
}
"""How Redis, Kubernetes and nginx read the strings of these names; those of services are hosts."""
WIRED = frozenset({"REWARD_HOST", "REWARD_PORT", "REWARD_SOCKET", "PROMETHEUS_MULTIPROC_DIR"})
"""Settings of the reward server that its container decides."""


Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}


def written(root: Path) -> dict[Path, str]:
    """The text that each written file of the chart should have, for the tree at `root`."""
    chart = root / CHART
    values = DEFAULT.sub(_default, (chart / "values.yaml").read_text(encoding="utf-8"))
    return {
        chart / "values.yaml": values,
        chart / "values.schema.json": json.dumps(schema(yaml.safe_load(values)), indent=1) + "\n",
        chart / "README.md": page(values),
        chart / "files/services.yaml": yaml.safe_dump({name: _plain(asdict(one)) for name, one in SERVICES.items()}),
        chart / "files/settings.yaml": yaml.safe_dump(
            {
                **{name: _defaults(name) for name in ("gateway", "judge", "rules")},
                "options": _option_defaults(),
                "timeouts": {
                    name: int(TABLE[name].default)
                    for name in sorted({one.startup_timeout for one in SERVICES.values()})
                },
                "ports": {**{name: int(TABLE[port].default) for name, port in ports.GATEWAY.items()}, **METRICS_PORTS},
            }
        ),
    }


def _plain(value: Any) -> Any:
    """Return a description as YAML holds it: lists for tuples, and only what is there."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part not in ((), {}, "", None)}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def schema(values: Mapping[str, Any]) -> Schema:
    """The JSON schema of the chart's values, which refuses names that they do not have.

    Args:
        values: the defaults, whose types are taken for those of all values; an empty map may hold anything.
    """
    made = _of(values)
    parts = made["properties"]
    common = _partial(parts[COMMON])["properties"]
    for section in POD_SECTIONS:
        parts[section]["properties"].update(common)
    for section in ("judge", "embedding"):
        parts[section]["properties"]["modelCache"]["properties"] = {"claim": _claim()}
    scoring = read_by("rules", "worker")
    keys = ["hf_token", *(name.lower() for name, setting in scoring.items() if setting.secret)]
    parts["settings"] = _settings(scoring.values())
    parts["gateway"]["properties"]["settings"] = _settings(read_by("gateway").values())
    parts["keys"]["properties"]["names"]["items"] = {"enum": keys}
    parts["keys"]["properties"]["values"] = {
        "propertyNames": {"enum": keys},
        "additionalProperties": {"type": "string"},
    }
    parts["files"]["properties"]["functions"]["items"]["not"] = {"pattern": r"^/|:|\.\."}
    parts["judges"] = {
        "type": "object",
        # Of Services with it, and of a route: not as in a version (v1), nor that of a rule.
        "propertyNames": {
            "pattern": "^[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?$",
            "not": {"anyOf": [{"pattern": "^v[0-9]"}, {"enum": sorted(RULES)}]},
        },
        "additionalProperties": _partial(parts["judge"]),
    }
    parts["global"] = {"type": "object"}  # Helm's own, for charts that have this one as a part
    return {"$schema": "http://json-schema.org/draft-07/schema#", **made, **_reward_types()}


def _claim() -> Schema:
    """Return the schema of a volume claim that the chart creates."""
    modes = ["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]
    parts = {"size": _of("", "size"), "accessMode": {"enum": modes}, "className": TEXT}
    return {"type": "object", "properties": parts, "additionalProperties": False, "required": ["size", "accessMode"]}


def _reward_types() -> Schema:
    """Return the condition that REWARD_TYPE is built in where the values name no functions, routes or judges."""
    routes = builtin_routes()
    known = {
        "anyOf": [
            {"enum": sorted(route.name for route in routes if route.exact)},
            {"pattern": f"^({'|'.join(re.escape(route.name) + '_' * route.exact for route in routes)})"},
        ]
    }
    own = {
        "files": {"properties": {"functions": {"maxItems": 0}, "routes": {"const": ""}}},
        "judges": {"maxProperties": 1},
        "settings": {"not": {"anyOf": [{"required": [name]} for name in ("REWARD_FUNCTIONS", "REWARDSTACK_ROUTES")]}},
    }
    return {
        "if": {"properties": own},
        "then": {"properties": {"settings": {"properties": {"REWARD_TYPE": known}}}},
    }


def _of(value: Any, name: str = "") -> Schema:
    if isinstance(value, dict):
        parts = {key: _of(part, key) for key, part in value.items()}
        # All are there by default: one that is not was set to null.
        closed = {"properties": parts, "additionalProperties": False, "required": [*parts]} if parts else {}
        if name in OPEN:
            closed = {}
        return {"type": "object", **closed, **({"additionalProperties": TEXT} if name in LABELS else {})}
    if isinstance(value, list):
        return {"type": "array", **_items(name)}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer", "minimum": int(name in AT_LEAST_ONE)}
    if name in CHOICES:
        return {"type": "string", "enum": CHOICES[name]}
    return {"type": "string", **({"pattern": PATTERNS[name]} if name in PATTERNS else {})}


def _items(name: str) -> Schema:
    """What a list of this name holds."""
    if name in WORDS:
        return {"items": dict(TEXT)}
    if name == "extraArgs":
        return {"items": {"type": ["string", "number"]}}
    if name in NAMED:
        parts = dict.fromkeys(("name", *NAMED[name]), TEXT)
        return {"items": {"type": "object", "required": ["name"], "properties": parts}}
    return {}


def _partial(made: Schema) -> Schema:
    """The same, where any part may be missing."""
    parts = {name: _partial(part) for name, part in made.get("properties", {}).items()}
    return {name: value for name, value in made.items() if name != "required"} | (
        {"properties": parts} if parts else {}
    )


def _settings(settings: Iterable[Setting]) -> Schema:
    """Of a map of settings by name; secrets are keys instead."""
    parts = {setting.name: setting.schema() for setting in settings if not setting.secret and setting.name not in WIRED}
    return {"type": "object", "properties": parts, "additionalProperties": False}


def _defaults(reader: str) -> dict[str, str]:
    return {name: setting.default for name, setting in read_by(reader).items() if setting.default and name not in WIRED}


def _option_defaults() -> dict[str, str]:
    """Return the defaults of the settings that fill options of services' commands."""
    names = {option.setting for service in SERVICES.values() for option in service.options}
    return {name: TABLE[name].default for name in sorted(names) if TABLE[name].default}


def _default(found: re.Match[str]) -> str:
    return f"{found['line']}{TABLE[found['setting']].default}{found['name']}"
