"""What clusters are given of the table: the JSON schema of a chart's values, and a container's file of variables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from rewardstack_settings.kinds import Schema
from services.stack.settings_table import read_by


def schema(*readers: str) -> Schema:
    """The JSON schema of an object that holds settings by name, those left out that are secrets.

    Args:
        readers: services whose settings it takes, such as `rules` and `worker`.
    """
    properties = {name: setting.schema() for name, setting in read_by(*readers).items() if not setting.secret}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def environment_file(values: Mapping[str, str], *readers: str) -> str:
    """A line NAME=value for each setting that is set, as a shell reads it (`apptainer exec --env-file`); no secret.

    Args:
        values: by name; what the readers do not read is left out.
        readers: services that are given the file.

    Raises:
        Malformed: a value is not what the table says.
    """
    lines = []
    for name, setting in read_by(*readers).items():
        if values.get(name) and not setting.secret:
            setting.read(values[name])
            lines.append(f"{name}={shlex.quote(values[name])}\n")
    return "".join(lines)
