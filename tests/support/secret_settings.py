"""Settings that are secret, each with a value of its kind."""

from __future__ import annotations

from rewardstack_settings.kinds import Pairs
from services.stack.settings import SECRETS, SETTINGS


def all_secrets(word: str) -> dict[str, str]:
    """Every secret setting, by name; its value is the word, or holds it."""
    return {name: f"name={word}" if isinstance(SETTINGS[name].kind, Pairs) else word for name in SECRETS}
