"""Prints the configuration that SkyRL composes of the arguments; without SkyRL, the arguments."""

from __future__ import annotations

import sys
import typing


def main(arguments: list[str]) -> None:
    """Prints YAML, or a line for each argument.

    Args:
        arguments: `KEY=VALUE`.
    """
    try:
        import typing_extensions

        if sys.version_info < (3, 12):  # there pydantic takes no other of what SkyRL 0.3.0 defines
            typing.TypedDict = typing_extensions.TypedDict
        from skyrl.train.config import get_config_as_yaml_str

        from rewardstack.trainers.skyrl import compose
    except ImportError as error:
        print(f"# what SkyRL, which does not import here ({error}), is told beside its defaults:")
        print(*arguments, sep="\n")
        return
    print(get_config_as_yaml_str(compose(arguments, "llm_as_a_judge_local")))


if __name__ == "__main__":
    main(sys.argv[1:])
