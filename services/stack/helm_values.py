"""Convert settings to values of the Helm chart. `make plan` prints the settings in `.env.local` in this form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from services.stack.settings import SETTINGS, USERS_FILES
from services.stack.settings_table import read_by

VALUES = {
    "JUDGE": ("judge", "enabled"),
    "JUDGE_MODEL": ("judge", "model"),
    "JUDGE_REPLICAS": ("judge", "replicas"),
    "JUDGE_TENSOR_PARALLEL_SIZE": ("judge", "gpus"),
    "REWARD_MODEL_ID": ("rewardModel", "model"),
    "EMBEDDING": ("embedding", "enabled"),
    "EMBEDDING_MODEL": ("embedding", "model"),
    "WORKERS": ("worker", "replicas"),
    "CACHE_MAX_MEMORY": ("cache", "maxMemory"),
    "QUEUE_MAX_MEMORY": ("queue", "maxMemory"),
    **{name: ("settings", name) for name in read_by("rules", "worker")},
    **{name: ("gateway", "settings", name) for name in read_by("gateway") if name not in read_by("rules", "worker")},
}
"""Path of each setting in the chart's values."""
SET_BY_CHART = frozenset({"REWARD_HOST", "REWARD_PORT", "REWARD_SOCKET", "PROMETHEUS_MULTIPROC_DIR"})
"""Settings that the chart sets itself."""


def to_values(settings: Mapping[str, str]) -> str:
    """Return settings as YAML values of the chart.

    Settings that need a file or a Secret, or for which the chart has no value, are listed in comments.

    Args:
        settings: values by name.
    """
    tree: dict[str, Any] = {}
    comments = []
    for name, value in settings.items():
        if name not in SETTINGS:
            comments.append(f"# {name}: pass it by `common.extraEnvFrom`, if reward functions or judges read it")
        elif SETTINGS[name].secret:
            comments.append(f"# {name}: put it into keys.existingSecret")
        elif name in USERS_FILES:
            comments.append(f"# {name}={value}: mount the file with `files`")
        elif name in VALUES and name not in SET_BY_CHART:
            *path, last = VALUES[name]
            branch = tree
            for part in path:
                branch = branch.setdefault(part, {})
            branch[last] = value != "off" if last == "enabled" else _typed(value)
        else:
            comments.append(f"# {name}={value}: the chart has no such value")
    return "\n".join([*_lines(tree), *comments])


def _typed(value: str) -> str | int:
    return int(value) if value.isascii() and value.isdecimal() else value


def _lines(tree: Mapping[str, Any], margin: str = "") -> list[str]:
    """Return a nested map as lines of YAML."""
    lines = []
    for name, value in tree.items():
        if isinstance(value, dict):
            lines += [f"{margin}{name}:", *_lines(value, f"{margin}  ")]
        else:
            lines.append(f"{margin}{name}: {json.dumps(value)}")
    return lines
