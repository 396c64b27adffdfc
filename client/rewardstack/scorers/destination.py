"""The server that scores a sample: the URL in the sample, else the URLs in the environment.

The environment's key is sent only to the environment's servers, so a sample cannot send it to another one.
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
"""Returns the service for URLs and a key."""


KEY_REFUSED = (401, 403)
"""Statuses for a wrong or missing key."""


class RefusedKeyError(RejectedError):
    """A server refuses the key; the message names the source of the key and the remedy."""


class Destination(NamedTuple):
    """The URLs and the key that score a sample."""

    urls: tuple[str, ...]
    api_key: str

    def __repr__(self) -> str:
        """Return the URLs without the key, which must not be logged."""
        return f"Destination({', '.join(self.urls)})"


class Servers:
    """The servers of one kind in the environment.

    Args:
        variable: name of the variable with their URLs.
        urls: their base URLs.
        api_key: sent to those servers only.
        start: how to start one, for the error if none is set.
        headers: name of the variable with extra headers for them, which may contain a key; empty for none.
        key_variable: name of the variable with their key; empty for `variable` with `_API_KEY` in place of `_URL`.
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
        """Return the refusal of a key with its source and the remedy; other errors unchanged."""
        if error.status not in KEY_REFUSED or isinstance(error, RefusedKeyError):
            return error
        return RefusedKeyError(f"{error}; {self._about_key(destination)}", error.status)

    def _about_key(self, destination: Destination) -> str:
        known = set(destination.urls) <= set(self.own.urls)
        if not destination.api_key and known and self._headers:
            return f"the server refuses the value of {self._headers}; correct it, or set {self.key_variable}"
        if not destination.api_key and known:
            return f"no key was sent; set {self.key_variable} to one that the server accepts"
        if not destination.api_key:
            return (
                "no key was sent, because the environment's key is only for the environment's servers; "
                "set extra_info.api_key to one that the server accepts"
            )
        if known and destination.api_key == self.own.api_key:
            return f"the server refuses the key in {self.key_variable}; set it to one that the server accepts"
        return "the server refuses the key in extra_info.api_key; correct it"

    def destination(self, extra: Mapping[str, Any]) -> Destination:
        """Return where a sample with this `extra_info` is scored.

        Raises:
            RequestError: `server_url` is not a URL, or `api_key` is not a string.
            SettingsError: neither the sample nor the environment sets a server.
        """
        destination = self._named(Fields(extra)) if "server_url" in extra or "api_key" in extra else self.own
        if not destination.urls:
            raise SettingsError(f"{self.variable} is not set; {self._start}", self.variable)
        return destination

    def _named(self, given: Fields) -> Destination:
        """Return the destination of a sample that sets a server, a key or both."""
        url, api_key = given.text("server_url", ""), given.text("api_key", "")
        urls = _own_urls(url) if url else self.own.urls
        known = set(urls) <= set(self.own.urls)
        return Destination(urls, api_key or (self.own.api_key if known else ""))


def _own_urls(text: str) -> tuple[str, ...]:
    """Parse a sample's server URLs; raise RequestError, also for an invalid proxy, which affects this sample only."""
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
