"""Prints the configuration that SkyRL composes of the arguments; without SkyRL, the arguments."""

from __future__ import annotations

import sys
from importlib.util import find_spec

if sys.version_info < (3, 12) and find_spec("typing_extensions"):
    import typing

    import typing_extensions

    typing.TypedDict = typing_extensions.TypedDict  # which pydantic wants of what SkyRL 0.3.0 defines


def main(arguments: list[str]) -> None:
    """Prints YAML, or a line for each argument.

    Args:
        arguments: `KEY=VALUE`.
    """
    if find_spec("skyrl") is None or find_spec("skyrl_gym") is None:
        print("# SkyRL is not installed here; what it is told beside its own defaults:", *arguments, sep="\n")
        return
    from rewardstack.trainers.skyrl import compose
    from skyrl.train.config import get_config_as_yaml_str

    print(get_config_as_yaml_str(compose(arguments, "llm_as_a_judge_local")))


if __name__ == "__main__":
    main(sys.argv[1:])
