"""The judges that the file of routes names without an address: the servers that `make up` starts for them."""

from __future__ import annotations

import re
from dataclasses import replace

from rewardstack.errors import RouteError
from rewardstack.routing.judges import NamedJudge
from rewardstack.routing.syntax import load_judges
from services.stack.errors import StackError
from services.stack.settings import Settings
from services.up.model_servers import EMBEDDING, JUDGE, ModelServer

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""What the name of a container on its network can hold, as `gateway/judge.conf.template` has it too."""


def servers(settings: Settings, default: str) -> list[ModelServer]:
    """The model servers of the stack: the two that every stack has, and one for each other model of a named judge.

    Args:
        settings: of the stack.
        default: the model of the default judge.

    Raises:
        StackError: the file cannot be read, a definition in it is malformed, or a name cannot be a server's.
    """
    shared, own = list[str](), dict[str, ModelServer]()
    for judge in to_be_started(settings):
        if judge.model in (default, settings["LLM_JUDGE_MODEL"]):
            shared.append(judge.name)
        elif server := own.get(judge.model):
            names, replicas = (*server.judges, judge.name), max(server.replicas, judge.replicas)
            own[judge.model] = replace(server, judges=names, replicas=replicas)
        else:
            own[judge.model] = replace(
                JUDGE,
                name=f"{JUDGE.name}.{judge.name}",
                model=judge.model,
                replicas=judge.replicas,
                judges=(judge.name,),
            )
    return [replace(JUDGE, judges=tuple(shared)), EMBEDDING, *own.values()]


def to_be_started(settings: Settings) -> list[NamedJudge]:
    """The judges of the file without an address, in its order.

    Raises:
        StackError: as `servers` does.
    """
    judges = [judge for file in settings.files("REWARDSTACK_ROUTES") for judge in _read(str(file))]
    found = [judge for judge in judges if not judge.address]
    for judge in found:
        if not NAME.fullmatch(judge.name):
            raise StackError(
                f"judges.{judge.name}: the name of a judge that make up starts is that of a server: up to 63 small "
                "letters, digits, `_` and `-`, a letter or a digit first",
                "give it another name, or an address",
            )
    return found


def _read(file: str) -> list[NamedJudge]:
    try:
        return load_judges(file)
    except RouteError as error:
        raise StackError(str(error), "docs/routing.md has the syntax") from None
