"""Validates REWARD_TYPE; gunicorn's master process does this before it starts workers."""

from __future__ import annotations

from rewardstack.errors import ConfigError, UnknownSourceError
from rewardstack.routing.routes import RULES
from rewardstack_rules.settings import Settings


def is_built_in(settings: Settings) -> bool:
    """Return whether REWARD_TYPE names a built-in reward function."""
    return settings.reward_type in RULES


def unknown_reward_type(settings: Settings) -> str:
    """Return the error for an unknown REWARD_TYPE, else an empty string; load all rules and custom files to check it.

    Errors in other settings are ignored, because workers report them.
    """
    from rewardstack_rules.functions.catalogue import load_registry
    from rewardstack_rules.scoring.evaluator import Evaluator

    try:
        Evaluator(settings, load_registry(settings.function_files)).source_of(settings.reward_type)
    except UnknownSourceError as error:
        return f"REWARD_TYPE: {error}"
    except ConfigError:
        pass
    return ""
