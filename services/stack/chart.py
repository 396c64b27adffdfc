"""Generate files of the Helm chart from the tables of services and settings: defaults, values schema and README.

In `values.yaml`, a line that ends in `# NAME` gets the default of the setting NAME.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from rewardstack.routing.routes import RULES, builtin_routes
from rewardstack_settings.setting import Setting
from services.stack import ports
from services.stack.chart_page import render_page
from services.stack.helm_values import SET_BY_CHART
from services.stack.services_table import SERVICES
from services.stack.settings_table import TABLE, read_by

CHART = "helm/rewardstack"
DEFAULT = re.compile(r"^(?P<line>.*: )\S.*(?P<name>  # (?P<setting>[A-Z_]+))$", re.M)
COMMON = "common"
"""The section of the chart's values that every section of `POD_SECTIONS` also accepts."""
POD_SECTIONS = ("rules", "worker", "sandbox", "gateway", "cache", "queue", "judge", "embedding")
CHOICES = {
    "device": ["gpu", "cpu"],
    "type": ["ClusterIP", "NodePort", "LoadBalancer"],
    "by": ["none", "hpa", "keda"],
    "imagePullPolicy": ["IfNotPresent", "Always", "Never"],
    "externalTrafficPolicy": ["Cluster", "Local"],
}
"""Allowed strings, by the name of the value."""
AT_LEAST_ONE = frozenset({"min", "max", "cpu", "requests", "gpus", "startupSeconds"})
"""Names of numbers that must be at least 1."""
METRICS_PORTS = {"gateway-metrics": 9113, "worker-metrics": 9100}
OPEN_MAPS = frozenset({"resources", "dashboardLabels", "namespace"})
"""Names of maps that accept keys other than those of their defaults."""
STRING_MAPS = frozenset(
    {
        *("annotations", "clients", "commonLabels", "dashboardLabels", "direct", "labels", "namespace", "nodeSelector"),
        *("podAnnotations", "podLabels"),
    }
)
"""Names of maps from strings to strings."""
STRING_LISTS = frozenset({"program", "functions", "topologyKeys", "names"})
"""Names of lists of strings."""
OBJECT_LISTS = {"extraEnv": ["value"], "imagePullSecrets": [], "extraVolumes": [], "extraVolumeMounts": ["mountPath"]}
"""For each list of objects that have a `name`, by the name of the list: the other string fields of these objects."""
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
"""Patterns of strings, by name: sizes and addresses for Redis, Kubernetes and nginx, and Ingress hosts."""


Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}


def render_files(root: Path) -> dict[Path, str]:
    """Return the text of each generated file of the chart, by path, for the checkout at `root`."""
    chart = root / CHART
    values = DEFAULT.sub(_default, (chart / "values.yaml").read_text(encoding="utf-8"))
    return {
        chart / "values.yaml": values,
        chart / "values.schema.json": json.dumps(schema(yaml.safe_load(values)), indent=1) + "\n",
        chart / "README.md": render_page(values),
        chart / "files/services.yaml": yaml.safe_dump(
            {name: _drop_empty(asdict(one)) for name, one in SERVICES.items()}
        ),
        chart / "files/settings.yaml": yaml.safe_dump(
            {
                **{name: _defaults(name) for name in ("gateway", "judge", "reward-model", "rules")},
                "options": _option_defaults(),
                "timeouts": {
                    name: int(TABLE[name].default)
                    for name in sorted({one.startup_timeout for one in SERVICES.values()})
                },
                "ports": {**{name: int(TABLE[port].default) for name, port in ports.GATEWAY.items()}, **METRICS_PORTS},
            }
        ),
    }


def _drop_empty(value: Any) -> Any:
    """Return a value without empty parts, and with lists instead of tuples."""
    if isinstance(value, dict):
        return {name: _drop_empty(part) for name, part in value.items() if part not in ((), {}, "", None)}
    return [_drop_empty(part) for part in value] if isinstance(value, list | tuple) else value


def schema(values: Mapping[str, Any]) -> Schema:
    """Return the JSON schema of the chart's values. Unknown names are invalid.

    Args:
        values: default values, from which types are inferred; an empty map may contain anything.
    """
    result = _infer_schema(values)
    parts = result["properties"]
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
        # A judge's name is part of a Service name and a route. It must not begin like an API version (v1), and must not
        # be the name of a rule.
        "propertyNames": {
            "pattern": "^[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?$",
            "not": {"anyOf": [{"pattern": "^v[0-9]"}, {"enum": sorted(RULES)}]},
        },
        "additionalProperties": _partial(parts["judge"]),
    }
    reward_model = deepcopy(parts["judge"])
    for name in ("enabled", "route", "scaling"):
        del reward_model["properties"][name]
    parts["rewardModel"] = _partial(reward_model)
    parts["global"] = {"type": "object"}  # Helm's global values, for charts that use this one as a subchart
    return {"$schema": "http://json-schema.org/draft-07/schema#", **result, **_reward_types()}


def _claim() -> Schema:
    """Return the schema of a volume claim that the chart creates."""
    modes = ["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]
    parts = {"size": _infer_schema("", "size"), "accessMode": {"enum": modes}, "className": TEXT}
    return {"type": "object", "properties": parts, "additionalProperties": False, "required": ["size", "accessMode"]}


def _reward_types() -> Schema:
    """Return the condition that REWARD_TYPE is a built-in route, unless the values add functions, routes or judges."""
    routes = builtin_routes()
    known = {
        "anyOf": [
            {"enum": sorted(route.name for route in routes if route.exact)},
            {"pattern": f"^({'|'.join(re.escape(route.name) + '_' * route.exact for route in routes)})"},
        ]
    }
    adds_nothing = {
        "files": {"properties": {"functions": {"maxItems": 0}, "routes": {"const": ""}}},
        "judges": {"maxProperties": 1},
        "settings": {"not": {"anyOf": [{"required": [name]} for name in ("REWARD_FUNCTIONS", "REWARDSTACK_ROUTES")]}},
    }
    return {
        "if": {"properties": adds_nothing},
        "then": {"properties": {"settings": {"properties": {"REWARD_TYPE": known}}}},
    }


def _infer_schema(value: Any, name: str = "") -> Schema:
    if isinstance(value, dict):
        parts = {key: _infer_schema(part, key) for key, part in value.items()}
        # All keys have defaults, so a key is missing only if the user has set it to null.
        closed = {"properties": parts, "additionalProperties": False, "required": [*parts]} if parts else {}
        if name in OPEN_MAPS:
            closed = {}
        return {"type": "object", **closed, **({"additionalProperties": TEXT} if name in STRING_MAPS else {})}
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
    """Return the `items` schema of a list with this name."""
    if name in STRING_LISTS:
        return {"items": dict(TEXT)}
    if name == "extraArgs":
        return {"items": {"type": ["string", "number"]}}
    if name in OBJECT_LISTS:
        parts = dict.fromkeys(("name", *OBJECT_LISTS[name]), TEXT)
        return {"items": {"type": "object", "required": ["name"], "properties": parts}}
    return {}


def _partial(result: Schema) -> Schema:
    """Return a schema with all properties optional, at every level."""
    parts = {name: _partial(part) for name, part in result.get("properties", {}).items()}
    return {name: value for name, value in result.items() if name != "required"} | (
        {"properties": parts} if parts else {}
    )


def _settings(settings: Iterable[Setting]) -> Schema:
    """Return the schema of a map of settings by name. Secrets are not included, because they belong to `keys`."""
    parts = {
        setting.name: setting.schema()
        for setting in settings
        if not setting.secret and setting.name not in SET_BY_CHART
    }
    return {"type": "object", "properties": parts, "additionalProperties": False}


def _defaults(reader: str) -> dict[str, str]:
    return {
        name: setting.default
        for name, setting in read_by(reader).items()
        if setting.default and name not in SET_BY_CHART
    }


def _option_defaults() -> dict[str, str]:
    """Return the defaults of the settings that fill options of services' commands."""
    names = {option.setting for service in SERVICES.values() for option in service.options}
    return {name: TABLE[name].default for name in sorted(names) if TABLE[name].default}


def _default(found: re.Match[str]) -> str:
    return f"{found['line']}{TABLE[found['setting']].default}{found['name']}"
