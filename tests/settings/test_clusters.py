"""The JSON schema of a chart's values, and the file of a container's variables."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rewardstack_settings.setting import Malformed
from services.stack.clusters import environment_file, schema
from services.stack.settings_table import read_by

SERVICES = ("rules", "worker", "gateway", "judge")


@pytest.mark.parametrize(
    ("values", "valid"),
    [
        ({}, True),
        ({"VERIFY_TIMEOUT": 0.5, "REWARD_WORKERS": 4, "JUDGE_BALANCING": "affinity", "VERIFY_PROCESSES": ""}, True),
        ({"VERIFY_TIMEOUT": 0}, False),
        ({"REWARD_WORKERS": "four"}, False),
        ({"JUDGE_BALANCING": "random"}, False),
        ({"VERIFY_TIMEUOT": 5}, False),
        ({"REWARD_SERVER_API_KEYS": "key"}, False),
        ({"MONITORING": "on"}, False),
    ],
)
def test_schema(values: dict[str, Any], valid: bool) -> None:
    """It takes what the services take, and refuses other names, other services' settings and secrets."""
    assert Draft202012Validator(schema(*SERVICES)).is_valid(values) == valid


def test_schema_is_documented() -> None:
    """Each of its properties has its default, of its own type, and what it means."""
    made = json.loads(json.dumps(schema(*SERVICES)))
    Draft202012Validator.check_schema(made)
    Draft202012Validator(made).validate({name: one["default"] for name, one in made["properties"].items()})
    assert made["properties"]["VERIFY_TIMEOUT"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 3600,
        "default": 5,
        "description": read_by("rules")["VERIFY_TIMEOUT"].help,
    }


@pytest.mark.usefixtures("needs_process")
def test_environment_file() -> None:
    """A shell reads the values as they are, and finds neither secrets nor other services' settings."""
    values = {"JUDGE_REVISION": 'it\'s $HOME; "2"', "VERIFY_TIMEOUT": "0.5", "REWARD_TYPE": ""}
    text = environment_file({**values, "REWARD_SERVER_API_KEYS": "a-key-of-the-tests", "MONITORING": "on"}, "rules")
    done = subprocess.run(["sh", "-c", f"set -a\n{text}env -0"], env={}, capture_output=True, text=True, check=True)
    given = dict(line.split("=", 1) for line in done.stdout.rstrip("\0").split("\0"))
    assert {name: given[name] for name in given.keys() & read_by("rules").keys()} == {
        "JUDGE_REVISION": values["JUDGE_REVISION"],
        "VERIFY_TIMEOUT": "0.5",
    }
    with pytest.raises(Malformed, match="^VERIFY_TIMEOUT"):
        environment_file({"VERIFY_TIMEOUT": "0"}, "rules")
