"""`code`: runs the policy's program against tests.

The code pool (package `rewardstack_rules.code`) evaluates this rule, not this module.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from rewardstack.errors import ConfigError, SettingsError
from rewardstack_rules.code import RUNNER_VERSION
from rewardstack_rules.code.extraction import extract_code
from rewardstack_rules.code.formats import TestsError, read_tests
from rewardstack_rules.code.options import FIELDS, Options
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.settings import CodeSettings

OFF = "CODE: programs are not run here; set CODE=on where they may be, or CODE_SANDBOX_URL (docs/code.md)"
DESCRIBE = """
import importlib.metadata, sys
print(sys.version, *sorted({f"{one.metadata['Name']}=={one.version}" for one in importlib.metadata.distributions()}))
"""
DESCRIBE_SECONDS = 60


def code_rule(settings: CodeSettings | None) -> Rule:
    """Return the rule `code`.

    Args:
        settings: settings for running programs; None if this server's processes run none.
    """
    interpreter = "" if settings is None else _interpreter(settings.python or sys.executable)
    fingerprint = f"{RUNNER_VERSION}-{interpreter}"
    return Rule("code", _evaluate, fingerprint, True, FIELDS, range=(0.0, 1.0), read_out=_read_out, programs=True)


def _evaluate(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
    raise ConfigError(OFF, "CODE")


def _read_out(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the program, and the number and kind of its tests, for an explanation; never the tests themselves."""
    options = Options.read(extra)
    facts: dict[str, Any] = {"program": extract_code(response, options.language, options.extract)}
    try:
        problem = read_tests(references[0] if references else "")
    except TestsError as error:
        return {**facts, "tests": str(error)}
    return {**facts, "tests": len(problem), "kind": problem.kind}


@lru_cache
def _interpreter(python: str) -> str:
    """Return a hash of an interpreter's version and packages; raise SettingsError if it cannot be run."""
    command = [python, "-s", "-c", DESCRIBE]
    try:
        output = subprocess.run(command, env={}, capture_output=True, timeout=DESCRIBE_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise SettingsError(f"CODE_PYTHON: {python} is no Python that can be run: {error}", "CODE_PYTHON") from error
    return blake2b(output, digest_size=8).hexdigest()
