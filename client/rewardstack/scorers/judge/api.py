"""Access to a judge's API: the paths below its base URL, and the headers and query that the environment adds."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlencode

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import SettingsError
from rewardstack.scorers.destination import Destination, FindPool
from rewardstack.settings import Settings
from rewardstack.transport.endpoint import Message

MODELS = "/models"
WHOLE = re.compile(r"/openai/deployments/[^/]+$|/v\d\w{0,20}/openai$|/v\d\w{0,20}$")
"""Ends of base URLs to which no `/v1` is added: Azure's, Gemini's, and API versions such as `/v4`."""
DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)$")
"""End of an Azure base URL, with the name of the model deployment."""


class Api:
    """Sends requests to judges, and adds the environment's headers and query to those for the environment's judges.

    Args:
        find_pool: returns the pool of endpoints for URLs and a key.
        settings: the settings, with the environment's judges and the headers and query parameters for them.
    """

    def __init__(self, find_pool: FindPool, settings: Settings) -> None:
        self._find = find_pool
        self._own = frozenset(settings.judge_urls)
        self._headers = dict(settings.judge_headers)
        self._query = query_of(settings)

    def ask(self, destination: Destination, message: Message, deadline: SharedDeadline) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that sends a request to a judge and returns the result; see `EndpointPool.ask`.

        Args:
            destination: the judge's servers and key.
            message: the request, with a path below the judge's base URL.
            deadline: deadline of the batch.
        """
        if (self._headers or self._query) and self._own.issuperset(destination.urls):
            message = message._replace(path=message.path + self._query, headers={**message.headers, **self._headers})
        return self._find(*destination).ask(message, deadline)


def query_of(settings: Settings) -> str:
    """Return the query string for the environment's judges, including the question mark; empty for none."""
    return f"?{urlencode(settings.judge_query)}" if settings.judge_query else ""


@lru_cache(maxsize=1024)
def below(urls: tuple[str, ...], path: str) -> str:
    """Return the path to append to base URLs: `/v1` and `path`, or only `path` if the URLs end with an API version.

    Args:
        urls: base URLs of equivalent judges, without a final `/v1`.
        path: the path without a version, such as `/chat/completions`.

    Raises:
        SettingsError: some of the URLs end with an API version, and some do not.
    """
    whole = {bool(WHOLE.search(url)) for url in urls}
    if len(whole) > 1:
        raise SettingsError(f"{', '.join(urls)}: either all or none of equivalent judges must end with an API version")
    return path if whole == {True} else f"/v1{path}"


def deployment(url: str) -> str:
    """Return the name of the model deployment in an Azure base URL; empty for other URLs."""
    found = DEPLOYMENT.search(url)
    return unquote(found[1]) if found else ""
