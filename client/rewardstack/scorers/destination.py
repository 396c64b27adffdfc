"""Where a sample is scored: at the URL it names, else at those of the environment.

The environment's key goes to the environment's own servers only, so a sample cannot carry it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import OPTIONS, Fields
from rewardstack.errors import RequestError, SettingsError
from rewardstack.settings import parse_urls
from rewardstack.transport.endpoint_pool import EndpointPool

FindService = Callable[[tuple[str, ...], str], EndpointPool]
"""The service behind these URLs, under this key."""


class Destination(NamedTuple):
    """Where a sample is scored, and under which key."""

    urls: tuple[str, ...]
    api_key: str

    def __repr__(self) -> str:
        """Without the key, which belongs into no log."""
        return f"Destination({', '.join(self.urls)})"


class Servers:
    """The servers of one kind that the environment names.

    Args:
        variable: that holds their addresses.
        urls: their base URLs.
        api_key: sent to those servers only.
        start: how to have one, for the error where none is set.
    """

    def __init__(self, variable: str, urls: tuple[str, ...], api_key: str, start: str) -> None:
        self.variable = variable
        self.own = Destination(urls, api_key)
        self._start = start

    def destination(self, extra: Mapping[str, Any]) -> Destination:
        """Where a sample with this `extra_info` is scored.

        Raises:
            RequestError: `server_url` is no URL, or `api_key` no string.
            SettingsError: neither the sample nor the environment names a server.
        """
        destination = self._named(Fields(extra)) if "server_url" in extra or "api_key" in extra else self.own
        if not destination.urls:
            raise SettingsError(f"{self.variable} is not set; {self._start}", self.variable)
        return destination

    def _named(self, given: Fields) -> Destination:
        """Whom the sample names, by a server, by a key or by both."""
        url, api_key = given.text("server_url", ""), given.text("api_key", "")
        urls = _own_urls(url) if url else self.own.urls
        known = set(urls) <= set(self.own.urls)
        return Destination(urls, api_key or (self.own.api_key if known else ""))


def _own_urls(text: str) -> tuple[str, ...]:
    try:
        return parse_urls(text, f"{OPTIONS}.server_url")
    except SettingsError as error:
        raise RequestError(str(error), error.field) from error
