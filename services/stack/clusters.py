"""Export the table of settings for clusters: a JSON schema, and an environment file for containers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from rewardstack_settings.kinds import Schema
from services.stack.settings_table import read_by


def schema(*readers: str) -> Schema:
    """Return the JSON schema of an object with settings by name, without secrets.

    Args:
        readers: services whose settings are included, such as `rules` and `worker`.
    """
    properties = {name: setting.schema() for name, setting in read_by(*readers).items() if not setting.secret}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def environment_file(values: Mapping[str, str], *readers: str) -> str:
    """Return an environment file (`apptainer exec --env-file`) with the settings that are set, without secrets.

    Args:
        values: values by name; settings that the readers do not read are omitted.
        readers: services that get the file.

    Raises:
        Malformed: a value is invalid.
    """
    lines = []
    for name, setting in read_by(*readers).items():
        if values.get(name) and not setting.secret:
            setting.read(values[name])
            lines.append(f"{name}={shlex.quote(values[name])}\n")
    return "".join(lines)
