"""Load all rules of a server: the built-in reward functions and custom ones.

`python -m rewardstack_rules.functions.catalog FILE...` checks whether a server can load these files. If a file cannot
be loaded, the last line on stderr is the reason and the exit status is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from rewardstack.errors import ConfigError, RouteError, SettingsError
from rewardstack_rules.functions.builtin import built_in_rules
from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.functions.user_functions import load_file
from rewardstack_rules.settings import CodeSettings

BUNDLED_FILE = Path(__file__).parents[1] / "reward_functions.py"


def load_registry(function_files: Iterable[Path], code: CodeSettings | None = None) -> Registry:
    """Return the built-in rules, then those of `reward_functions.py`, then those of additional files.

    Args:
        function_files: the additional files.
        code: settings for running programs; None if programs are not run here.

    Raises:
        SettingsError: a file cannot be loaded, or an additional file has no reward function.
        RouteError: a function cannot be used: its name is malformed or already used, its `range` is invalid, or one of
            its parameters cannot be bound.
    """
    registry = Registry()
    for rule in built_in_rules(code):
        registry.add(rule)
    _add_file(registry, BUNDLED_FILE)
    for path in function_files:
        before = len(registry)
        _add_file(registry, path)
        if len(registry) == before:
            raise SettingsError(
                f"REWARD_FUNCTIONS: {path} has no reward function; mark one with @reward_function", "REWARD_FUNCTIONS"
            )
    return registry


def _add_file(registry: Registry, path: Path) -> None:
    for rule in load_file(path):
        try:
            registry.add(rule)
        except RouteError as error:
            raise RouteError(f"{path}: {error}") from error


def _main(files: Iterable[str]) -> str:
    try:
        load_registry(map(Path, files))
    except ConfigError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]) or 0)
