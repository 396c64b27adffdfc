"""Secrets from files: the variable X is read from the file that X_FILE names.

Containers are given secrets as files, for `docker inspect` shows every variable that a container was started with.
"""

from __future__ import annotations

import os
from collections.abc import Collection, MutableMapping
from pathlib import Path

from rewardstack.errors import SettingsError
from rewardstack.settings_table import TABLE

SECRETS = tuple(name for name, setting in TABLE.items() if setting.secret)
"""The variables of the client that can hold one."""


def read_secret_files(names: Collection[str] = SECRETS, environ: MutableMapping[str, str] = os.environ) -> None:
    """Put what the files hold into the environment, in place of their names; call it before settings are read.

    Args:
        names: of the variables that can hold a secret.
        environ: is changed.

    Raises:
        SettingsError: a file cannot be read, or a variable is set beside it; the message names the variable.
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
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise SettingsError(f"{name}_FILE: {path} cannot be read: {reason}", f"{name}_FILE") from None
