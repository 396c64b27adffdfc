"""Generate files of the Helm chart from the tables of services and settings: defaults, values schema and README.

In `values.yaml`, a line that ends in `# NAME` gets the default of the setting NAME.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import yaml

from rewardstack.routing.routes import RULES, builtin_routes
from rewardstack_settings.kinds import Schema
from rewardstack_settings.setting import Setting
from services.stack import ports
from services.stack.helm_values import SET_BY_CHART
from services.stack.services_table import SERVICES
from services.stack.settings_table import TABLE, read_by

CHART = "helm/rewardstack"
DEFAULT = re.compile(r"^(?P<line>.*: )\S.*(?P<name>  # (?P<setting>[A-Z_]+))$", re.M)
COMMON = "common"
"""Name of a section of the chart's values. Every section in `POD_SECTIONS` also accepts the names in this section."""
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
"""Names of maps that also accept keys without a default."""
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
"""String fields of the objects in a list, by the name of the list. Every object also has the field `name`."""
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
README_HEAD = """\
<!-- Written from values.yaml by `make settings`. -->
# The chart's values

How to use them: [docs/kubernetes.md](../../docs/kubernetes.md). Other names are rejected.
"""
TABLE_HEAD = ("| name | default | meaning |", "| --- | --- | --- |")
SINGLE_VALUES = frozenset({"resources", "gpu", "cpu"})
"""Maps that the README documents as a single value."""
LINE = re.compile(r"^(?P<indent>(?:  )*)(?:# (?P<comment>.*)|(?P<name>\w+):(?P<flow>.*))?$", re.M)
TEXT: Schema = {"type": "string"}


def render_files(root: Path) -> dict[Path, str]:
    """Return the text of each generated file of the chart, by path, for the checkout at `root`."""
    chart = root / CHART
    values = DEFAULT.sub(_default, (chart / "values.yaml").read_text(encoding="utf-8"))
    return {
        chart / "values.yaml": values,
        chart / "values.schema.json": json.dumps(schema(yaml.safe_load(values)), indent=1) + "\n",
        chart / "README.md": render_readme(values),
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
        values: default values, from which types are inferred. A map that is empty by default accepts any content.
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
    """Return the part of the schema that restricts REWARD_TYPE.

    If the values add no functions, no routes and no judge besides the default one, REWARD_TYPE must name a built-in
    route.
    """
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
        # Helm merges the user's values into the defaults, so a key is missing only if the user has set it to null.
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
    """Return the defaults of the settings that the services' commands pass as options, by setting."""
    names = {option.setting for service in SERVICES.values() for option in service.options}
    return {name: TABLE[name].default for name in sorted(names) if TABLE[name].default}


def _default(found: re.Match[str]) -> str:
    return f"{found['line']}{TABLE[found['setting']].default}{found['name']}"


def render_readme(text: str) -> str:
    """Return the README for a `values.yaml`.

    The first table has the values that are outside any map. Then each top-level map has its own table.

    Args:
        text: text of the file. The comment above a value describes it. A value without a comment has the description
            of the nearest value above it that has the same name.

    Raises:
        ValueError: a value has no comment, and no earlier value has the same name.
    """
    values, tables = yaml.safe_load(text), {"": [*TABLE_HEAD]}
    path, comment, known = list[str](), list[str](), dict[str, str]()
    for line in LINE.finditer(text):
        name = line["name"]
        if name is None:
            comment = [*comment, line["comment"]] if line["comment"] else []
            continue
        path, meaning, comment = [*path[: len(line["indent"]) // len("  ")], name], " ".join(comment), []
        if SINGLE_VALUES & {*path[:-1]}:
            continue
        value = reduce(getitem, path, values)
        if isinstance(value, dict) and not line["flow"] and name not in SINGLE_VALUES:
            if len(path) == 1:
                tables[name] = [f"## {name}", "", meaning, "", *TABLE_HEAD]
            elif meaning:
                tables[path[0]].append(_row(path, "", meaning))
            continue
        known[name] = meaning or known.get(name, "")
        if not known[name]:
            raise ValueError(f"values.yaml: {'.'.join(path)} has no comment, and no value above it has that name")
        default = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6).removesuffix("...\n")
        tables["" if len(path) == 1 else path[0]].append(_row(path, f"`{default.strip()}`", known[name]))
    return "\n".join([README_HEAD, *(line for table in tables.values() for line in (*table, "")), ""])


def _row(path: Iterable[str], default: str, meaning: str) -> str:
    cells = (cell.replace("|", r"\|") for cell in (f"`{'.'.join(path)}`", default, meaning))
    return f"| {' | '.join(cells)} |"
