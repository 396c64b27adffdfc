"""Give every secret setting a valid value."""

from __future__ import annotations

from rewardstack_settings.kinds import Keys, Kind, Pairs
from services.stack.settings import SECRETS, SETTINGS


def all_secrets(word: str) -> dict[str, str]:
    """Return a value for each secret setting, by name; all values contain `word`."""
    return {name: _value(SETTINGS[name].kind, word) for name in SECRETS}


def _value(kind: Kind, word: str) -> str:
    if isinstance(kind, Pairs):
        return f"name={word}"
    return f"{word}-of-the-tests" if isinstance(kind, Keys) else word
