"""Send requests to a judge's API, with the path, the headers and the query parameters that its server needs."""

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
from rewardstack.transport.message import Message

MODELS = "/models"
VERSIONED_URL = re.compile(r"/openai/deployments/[^/]+$|/v\d\w{0,20}/openai$|/v\d\w{0,20}$")
"""Matches the end of a base URL to which no `/v1` is appended: a URL of Azure or Gemini, or a URL that ends with an API
version such as `/v4`."""
DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)$")
"""End of an Azure base URL. Group 1 of a match is the name of the model deployment."""


class Api:
    """Sends requests to judges.

    The configured headers and query parameters are added only to requests for the configured URLs, not to requests for
    a server that a sample names.

    Args:
        find_pool: returns the pool of endpoints for URLs and a key.
        settings: the settings, with the judge's URLs, headers and query parameters.
    """

    def __init__(self, find_pool: FindPool, settings: Settings) -> None:
        self._find_pool = find_pool
        self._configured_urls = frozenset(settings.judge_urls)
        self._headers = dict(settings.judge_headers)
        self._query = query_string(settings)

    def ask(self, destination: Destination, message: Message, deadline: SharedDeadline) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that sends a request to a judge and returns the result; see `Servers.ask`.

        Args:
            destination: the judge's servers and key.
            message: the request, with a path below the judge's base URL.
            deadline: deadline of the batch.
        """
        if (self._headers or self._query) and self._configured_urls.issuperset(destination.urls):
            message = message._replace(path=message.path + self._query, headers={**message.headers, **self._headers})
        return self._find_pool(*destination).ask(message, deadline)


def query_string(settings: Settings) -> str:
    """Return the query string of LLM_JUDGE_QUERY, which starts with `?`; empty if the setting is empty."""
    return f"?{urlencode(settings.judge_query)}" if settings.judge_query else ""


@lru_cache(maxsize=1024)
def api_path(urls: tuple[str, ...], path: str) -> str:
    """Return the path to append to base URLs: `path` if the URLs end with an API version, else `/v1` and `path`.

    Args:
        urls: base URLs of equivalent judges, without a final `/v1`.
        path: the path without a version, such as `/chat/completions`.

    Raises:
        SettingsError: some of the URLs end with an API version, and some do not.
    """
    has_version = {bool(VERSIONED_URL.search(url)) for url in urls}
    if len(has_version) > 1:
        raise SettingsError(f"{', '.join(urls)}: either all or none of a judge's URLs must end with an API version")
    return path if has_version == {True} else f"/v1{path}"


def deployment_name(url: str) -> str:
    """Return the name of the model deployment in an Azure base URL; empty for other URLs."""
    match = DEPLOYMENT.search(url)
    return unquote(match[1]) if match else ""
