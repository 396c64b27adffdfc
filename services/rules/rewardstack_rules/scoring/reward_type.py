"""Validates REWARD_TYPE; a master process does this before it starts workers."""

from __future__ import annotations

from rewardstack.errors import ConfigError, UnknownSourceError
from rewardstack.routing.routes import RULES
from rewardstack_rules.settings import Settings


def is_built_in(settings: Settings) -> bool:
    """Return whether REWARD_TYPE names a built-in reward function."""
    return settings.reward_type in RULES


def unknown_reward_type(settings: Settings) -> str:
    """Return the error of an unknown REWARD_TYPE, else an empty string; loads all rules and the user's files.

    Other settings may be invalid, too: workers report those.
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
