"""Where a judge's interface is: paths below its base URL, and what the environment adds to every request to its own."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlencode

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import SettingsError
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.settings import Settings
from rewardstack.transport.endpoint import NONE, Admit
from rewardstack.transport.reply import Read

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

    def get(
        self, destination: Destination, path: str, deadline: SharedDeadline, read: Read | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Return what a GET brings, to be awaited; raises as `EndpointPool.post` does.

        Args:
            destination: the judge.
            path: below its base URL.
            deadline: of the caller.
            read: makes the result of the body; None for the body itself.
        """
        headers, query = self._additions(destination)
        return self._find(*destination).get(path + query, deadline, headers, read=read)

    def post(
        self,
        destination: Destination,
        path: str,
        body: bytes,
        deadline: SharedDeadline,
        headers: Mapping[str, str] = NONE,
        *,
        hedged: bool = False,
        admit: Admit | None = None,
        read: Read | None = None,
        is_optional: bool = False,
    ) -> Coroutine[Any, Any, Any]:
        """Return what a POST brings, to be awaited; arguments and errors as of `get` and the pool's `post`."""
        own, query = self._additions(destination)
        if own:
            headers = {**headers, **own}
        return self._find(*destination).post(
            path + query,
            body,
            deadline,
            headers=headers,
            hedged=hedged,
            admit=admit,
            read=read,
            is_optional=is_optional,
        )

    def _additions(self, destination: Destination) -> tuple[Mapping[str, str], str]:
        if (self._headers or self._query) and self._own.issuperset(destination.urls):
            return self._headers, self._query
        return NONE, ""


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
