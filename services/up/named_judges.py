"""Read the judges in the routes files: the servers that `make up` starts for them, and the keys of external judges."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rewardstack.errors import RouteError, SettingsError
from rewardstack.routing.judges import NamedJudge
from rewardstack.routing.syntax import load_judges, template_files
from rewardstack.settings import read_api_key
from services.stack.errors import StackError
from services.stack.settings import RULES_SECRETS, Settings
from services.up.model_servers import EMBEDDING, JUDGE, REWARD_MODEL, ModelServer

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""Matches names of judges that `make up` starts. A name becomes part of a container's host name.

`gateway/judge.conf.template` must match the same characters.
"""


def servers(settings: Settings, default: str) -> list[ModelServer]:
    """Return the model servers that `make up` may start.

    These are the servers of the reward model, the default judge, the embedding model and the named judges. Named judges
    with the same model share a server. Named judges with the model `default` or LLM_JUDGE_MODEL use the default judge's
    server. Named judges with a `base_url` are external and need no server.

    Args:
        settings: settings of the stack.
        default: model of the default judge.

    Raises:
        StackError: a routes file is unreadable or malformed, or a judge's name is invalid for a server.
    """
    shared, by_model = list[str](), dict[str, ModelServer]()
    for judge in _judges(settings):
        if judge.base_url:
            continue
        if not NAME.fullmatch(judge.name):
            raise StackError(
                f"judges.{judge.name}: the name of a judge that make up starts has up to 63 lower-case letters, "
                "digits, `_` and `-`, and begins with a letter or a digit",
                "rename the judge, or give it a base_url",
            )
        if judge.model in (default, settings["LLM_JUDGE_MODEL"]):
            shared.append(judge.name)
        elif server := by_model.get(judge.model):
            names, replicas = (*server.judges, judge.name), max(server.replicas, judge.replicas)
            by_model[judge.model] = replace(server, judges=names, replicas=replicas)
        else:
            name, names = f"{JUDGE.name}.{judge.name}", (judge.name,)
            by_model[judge.model] = replace(JUDGE, name=name, model=judge.model, replicas=judge.replicas, judges=names)
    # The reward model is first, because optional servers may use only the memory that it leaves.
    required = [REWARD_MODEL] if settings["REWARD_MODEL_ID"] else []
    return [*required, replace(JUDGE, judges=tuple(shared)), EMBEDDING, *by_model.values()]


def keys(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the keys of external judges by environment variable (`api_key_env`).

    A key that is also a setting of the stack, such as LLM_JUDGE_SERVER_API_KEY, is checked, but not returned.

    Raises:
        StackError: a key is missing or invalid, or a routes file is unreadable or malformed.
    """
    found = {}
    for judge in _judges(settings):
        variable = judge.api_key_env
        if not variable:
            continue
        try:
            key = read_api_key(variable, {variable: settings[variable]} if variable in RULES_SECRETS else environ)
        except SettingsError as error:
            raise StackError(f"judges.{judge.name}.api_key_env: {error}", f"export {variable}=...") from None
        if variable not in RULES_SECRETS:
            found[variable] = key
    return found


def key_file(variable: str) -> str:
    """Return the name of the file that stores the key from an environment variable."""
    return f"judge_key_{variable}"


def templates(routes: Path) -> list[str]:
    """Return the paths of prompt templates in a routes file, relative to the folder of the routes file.

    Raises:
        StackError: the routes file is unreadable or malformed.
    """
    _read(str(routes))
    return template_files(str(routes))


def _judges(settings: Settings) -> list[NamedJudge]:
    return [judge for file in settings.files("REWARDSTACK_ROUTES") for judge in _read(str(file))]


def _read(file: str) -> list[NamedJudge]:
    try:
        return load_judges(file)
    except RouteError as error:
        raise StackError(str(error), "docs/routing.md has the syntax") from None
