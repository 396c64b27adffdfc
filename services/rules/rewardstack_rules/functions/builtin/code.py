"""`code`: run the policy's program against tests.

This module only describes the rule. The package `rewardstack_rules.code` runs the tests, in isolated processes that no
other rule uses.
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
from rewardstack_rules.code.languages import DEFAULT, VARIABLE, find_compiler
from rewardstack_rules.code.options import FIELDS, Options
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.settings import CodeSettings

DISABLED = (
    "CODE: programs are not run; set CODE=on to run them here, or set CODE_SANDBOX_URL or SANDBOX_FUSION_URL to run "
    "them on another server (docs/code.md)"
)
DESCRIBE = """
import importlib.metadata, sys
print(sys.version, *sorted({f"{one.metadata['Name']}=={one.version}" for one in importlib.metadata.distributions()}))
"""
"""Program that prints the version and the packages of the interpreter that runs it."""
DESCRIBE_SECONDS = 60
"""Timeout of a command that prints versions, in seconds."""


def code_rule(settings: CodeSettings | None) -> Rule:
    """Return the rule `code`.

    Args:
        settings: settings for running programs; None if this server runs none.
    """
    fingerprint = f"{RUNNER_VERSION}-{_tools(settings)}"
    return Rule("code", _evaluate, fingerprint, True, FIELDS, range=(0.0, 1.0), read_out=_read_out, runs_programs=True)


def _tools(settings: CodeSettings | None) -> str:
    """Return hashes of the interpreter and the compiler; empty if `settings` is None.

    If SandboxFusion runs the programs, return a hash of its URLs and of CODE_CXX instead.
    """
    if settings is None:
        return ""
    if settings.fusion_urls:
        return _hash(" ".join([*settings.fusion_urls, settings.compiler]).encode())
    return _interpreter(settings.python or sys.executable) + _compiler(settings.compiler)


def _evaluate(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
    raise ConfigError(DISABLED, "CODE")


def _read_out(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the program, and the number and kind of its tests, to explain a score; never the tests themselves."""
    options = Options.read(extra)
    language = options.language or DEFAULT
    try:
        problem = read_tests(references[0] if references else "")
    except TestsError as error:
        return {"program": extract_code(response, language, options.extract), "tests": str(error)}
    language = options.language or problem.language
    program = extract_code(response, language, options.extract)
    return {"program": program, "language": language, "tests": len(problem), "kind": problem.kind}


@lru_cache
def _interpreter(python: str) -> str:
    """Return a hash of an interpreter's version and packages; raise SettingsError if it cannot be run."""
    try:
        return _hash_output([python, "-s", "-c", DESCRIBE])
    except (OSError, subprocess.SubprocessError) as error:
        raise SettingsError(f"CODE_PYTHON: {python} cannot be run as Python: {error}", "CODE_PYTHON") from error


@lru_cache
def _compiler(setting: str) -> str:
    """Return a hash of the compiler's version; empty if there is no compiler.

    Raises:
        SettingsError: the compiler that CODE_CXX names cannot be run.
    """
    try:
        return "-" + _hash_output([find_compiler(setting) or setting, "--version"])
    except (OSError, subprocess.SubprocessError) as error:
        if not setting:
            return ""
        why = f"{setting} cannot be run as a compiler: {error}; set another one, or install g++"
        raise SettingsError(f"{VARIABLE}: {why}", VARIABLE) from error


def _hash_output(command: list[str]) -> str:
    """Return a hash of what a command prints; raise OSError or SubprocessError if it fails."""
    output = subprocess.run(command, env={}, capture_output=True, timeout=DESCRIBE_SECONDS, check=True).stdout
    return _hash(output)


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
