"""Where a sample is scored: at the URL it names, else at those of the environment.

The environment's key goes to the environment's own servers only, so a sample cannot carry it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import OPTIONS, Fields
from rewardstack.errors import RejectedError, RequestError, SettingsError
from rewardstack.settings import parse_urls
from rewardstack.transport.endpoint_pool import EndpointPool
from rewardstack.transport.http import proxy_of

FindService = Callable[[tuple[str, ...], str], EndpointPool]
"""The service behind these URLs, under this key."""


KEY_REFUSED = (401, 403)
"""Statuses by which a server refuses the key that was sent, or that none was."""


class RefusedKeyError(RejectedError):
    """A server does not take the key that goes to it; the message says whose key it is, and the remedy."""


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
        headers: the variable whose headers go to those servers, too, and may hold a key; empty where none do.
        key_variable: that holds their key; where it is empty, it is `variable` with `_API_KEY` for `_URL`.
    """

    def __init__(
        self, variable: str, urls: tuple[str, ...], api_key: str, start: str, headers: str = "", key_variable: str = ""
    ) -> None:
        self.variable = variable
        self.key_variable = key_variable or f"{variable.removesuffix('_URL')}_API_KEY"
        self.own = Destination(urls, api_key)
        self._start = start
        self._headers = headers

    def explained(self, error: RejectedError, destination: Destination) -> RejectedError:
        """Return a destination's refusal of a key with whose it is and what to do; every other refusal as it is."""
        if error.status not in KEY_REFUSED or isinstance(error, RefusedKeyError):
            return error
        return RefusedKeyError(f"{error}; {self._about_key(destination)}", error.status)

    def _about_key(self, destination: Destination) -> str:
        known = set(destination.urls) <= set(self.own.urls)
        if not destination.api_key and known and self._headers:
            return f"it does not take what {self._headers} holds; correct that, or set {self.key_variable}"
        if not destination.api_key and known:
            return f"no key was sent; set {self.key_variable} to one that the server takes"
        if not destination.api_key:
            return (
                "no key was sent, for that of the environment goes to the environment's servers alone; "
                "give one that the server takes in extra_info.api_key"
            )
        if known and destination.api_key == self.own.api_key:
            return f"it does not take the key of {self.key_variable}; set that to one that it takes"
        return "it does not take the key of extra_info.api_key; correct that"

    def destination(self, extra: Mapping[str, Any]) -> Destination:
        """Return where a sample with this `extra_info` is scored.

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
    """The URLs of a sample's own; what is wrong with the way to them is that sample's alone, too."""
    field = f"{OPTIONS}.server_url"
    try:
        urls = parse_urls(text, field)
    except SettingsError as error:
        raise RequestError(str(error), field) from error
    try:
        for url in urls:
            proxy_of(url)
    except SettingsError as error:
        raise RequestError(f"{field}: {error}", field) from error
    return urls
