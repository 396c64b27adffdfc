"""Read secrets from files: the value of a variable X from the file that X_FILE names.

Containers get secrets as files, because `docker inspect` shows all environment variables of a container.
"""

from __future__ import annotations

import os
from collections.abc import Collection, MutableMapping
from pathlib import Path

from rewardstack.errors import SettingsError
from rewardstack.settings_table import TABLE

SECRETS = tuple(name for name, setting in TABLE.items() if setting.secret)
"""The client's variables that can hold a secret."""
SERVER_KEYS = "REWARD_SERVER_API_KEYS"
"""Environment variable with the keys that the reward server accepts.

If REWARD_SERVER_API_KEY is not set, `rewardstack` sends the first of these keys: the machine that runs the stack
usually has only this variable.
"""


def read_secret_files(names: Collection[str] = SECRETS, environ: MutableMapping[str, str] = os.environ) -> None:
    """Set each variable X to the content of the file that X_FILE names, and remove X_FILE.

    Call this before reading settings.

    Args:
        names: names of the variables that can hold a secret.
        environ: the environment variables, which are changed in place.

    Raises:
        SettingsError: a file cannot be read, or X is set as well; the error names the variable.
    """
    for name in names:
        path = environ.pop(f"{name}_FILE", "")
        if not path:
            continue
        if environ.get(name):
            raise SettingsError(f"{name} and {name}_FILE are both set; unset one of them", name)
        try:
            environ[name] = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(f"{name}_FILE: {path} cannot be read: {reason}", f"{name}_FILE") from None
