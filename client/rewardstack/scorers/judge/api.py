"""Where a judge's interface is: paths below its base URL, and what the environment adds to every request to its own."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlencode

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import SettingsError
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.settings import Settings
from rewardstack.transport.endpoint import Message

MODELS = "/models"
WHOLE = re.compile(r"/openai/deployments/[^/]+$|/v\d\w{0,20}/openai$|/v\d\w{0,20}$")
"""The end of a base URL to which no `/v1` is added: Azure's, Gemini's, and other versions."""
DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)$")


class Api:
    """The interfaces of all judges.

    Args:
        find_service: opens connections.
        settings: the judges of the environment, the headers and query parameters that go to them and to no other.
    """

    def __init__(self, find_service: FindService, settings: Settings) -> None:
        self._find = find_service
        self._own = frozenset(settings.judge_urls)
        self._headers = dict(settings.judge_headers)
        self._query = query_of(settings)

    def ask(self, destination: Destination, message: Message, deadline: SharedDeadline) -> Coroutine[Any, Any, Any]:
        """Return what a message to a judge brings, to be awaited; raises as `EndpointPool.ask` does.

        Args:
            destination: the judge.
            message: its path is below the judge's base URL.
            deadline: of all who wait for the reply.
        """
        if (self._headers or self._query) and self._own.issuperset(destination.urls):
            message = message._replace(path=message.path + self._query, headers={**message.headers, **self._headers})
        return self._find(*destination).ask(message, deadline)


def query_of(settings: Settings) -> str:
    """The query that goes to the environment's judges, with its question mark; empty for none."""
    return f"?{urlencode(settings.judge_query)}" if settings.judge_query else ""


@lru_cache(maxsize=1024)
def below(urls: tuple[str, ...], path: str) -> str:
    """The path of one of the interface's own below base URLs.

    Args:
        urls: base URLs of equivalent judges; a `/v1` at their end has been taken off.
        path: such as `/chat/completions`.

    Raises:
        SettingsError: some have their version at the end, and some do not.
    """
    whole = {bool(WHOLE.search(url)) for url in urls}
    if len(whole) > 1:
        raise SettingsError(f"{', '.join(urls)}: equivalent judges, and only some of them with a version at the end")
    return path if whole == {True} else f"/v1{path}"


def deployment(url: str) -> str:
    """The name of the model that Azure has deployed at a base URL; empty where it is no such address."""
    found = DEPLOYMENT.search(url)
    return unquote(found[1]) if found else ""
