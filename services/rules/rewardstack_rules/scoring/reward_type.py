"""Validate REWARD_TYPE in gunicorn's master process, before it starts workers."""

from __future__ import annotations

from rewardstack.errors import ConfigError, UnknownSourceError
from rewardstack.routing.routes import RULES
from rewardstack_rules.settings import Settings


def is_built_in(settings: Settings) -> bool:
    """Return whether REWARD_TYPE names a built-in reward function."""
    return settings.reward_type in RULES


def unknown_reward_type(settings: Settings) -> str:
    """Return an error message if REWARD_TYPE is unknown, else an empty string.

    The check loads all rules and custom files. It ignores errors in other settings, because workers report them.
    """
    from rewardstack_rules.functions.catalog import load_registry
    from rewardstack_rules.scoring.evaluator import Evaluator

    try:
        Evaluator(settings, load_registry(settings.function_files)).get_source(settings.reward_type)
    except UnknownSourceError as error:
        return f"REWARD_TYPE: {error}"
    except ConfigError:
        pass
    return ""
