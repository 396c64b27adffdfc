"""Choose the server for a sample: the sample's `server_url`, else the servers in the environment or the routes file.

The configured API key is sent only to the configured servers, so a sample that names its own server cannot steal the
key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rewardstack.core.fields import OPTIONS, Fields
from rewardstack.core.imports import import_lock
from rewardstack.errors import RejectedError, RequestError, SettingsError
from rewardstack.settings import parse_urls
from rewardstack.transport import servers
from rewardstack.transport.http import find_proxy

FindPool = Callable[[tuple[str, ...], str], servers.Servers]
"""Returns the `servers.Servers` for base URLs and an API key."""


KEY_REFUSED = (401, 403)
"""HTTP statuses for a wrong or missing API key."""


class RefusedKeyError(RejectedError):
    """A server refuses the API key; the message says where the key is set and how to fix it."""


class Destination(NamedTuple):
    """The base URLs of equivalent servers that score a sample, and the API key for them."""

    urls: tuple[str, ...]
    api_key: str

    def __repr__(self) -> str:
        """Return the URLs only, because the key must not be logged."""
        return f"Destination({', '.join(self.urls)})"


class Servers:
    """The configured servers of one kind, such as judges: those that environment variables or a routes file set.

    Args:
        variable: name of the variable or routes file field with the URLs, for errors.
        urls: the base URLs of the servers.
        api_key: the API key, which is sent to these servers only.
        start: how to start a server, for the error if `urls` is empty.
        headers: name of the variable with extra headers, which may contain a key; empty for none.
        key_variable: name of the variable with the key. If empty, the name is made from `variable`, with `_API_KEY` in
            place of `_URL`.
    """

    def __init__(
        self, variable: str, urls: tuple[str, ...], api_key: str, start: str, headers: str = "", key_variable: str = ""
    ) -> None:
        self.variable = variable
        self.key_variable = key_variable or f"{variable.removesuffix('_URL')}_API_KEY"
        self.default = Destination(urls, api_key)
        self._start = start
        self._headers = headers

    def with_key_hint(self, error: RejectedError, destination: Destination) -> RejectedError:
        """If `error` is about a refused key, return an error that also says where the key is set; else return `error`.

        Args:
            error: the error of a server.
            destination: the servers and the key of the request.
        """
        if error.status not in KEY_REFUSED or isinstance(error, RefusedKeyError):
            return error
        return RefusedKeyError(f"{error}; {self._key_hint(destination)}", error.status)

    def _key_hint(self, destination: Destination) -> str:
        known = set(destination.urls) <= set(self.default.urls)
        if not destination.api_key and known and self._headers:
            return f"the server refuses the value of {self._headers}; correct it, or set {self.key_variable}"
        if not destination.api_key and known:
            return f"no key was sent; set {self.key_variable} to one that the server accepts"
        if not destination.api_key:
            return (
                "no key was sent, because the environment's key is only for the environment's servers; "
                "set extra_info.api_key to one that the server accepts"
            )
        if known and destination.api_key == self.default.api_key:
            return f"the server refuses the key in {self.key_variable}; set it to one that the server accepts"
        return "the server refuses the key in extra_info.api_key; correct it"

    def wrong_url_error(self, error: RejectedError, destination: Destination) -> SettingsError:
        """Return the error about URLs under which no server of this kind answers, with the remedy.

        Args:
            error: the error of the server that answered.
            destination: the servers of the request.
        """
        with import_lock:
            from rewardstack.core.addresses import wrong_url_remedy
        is_configured = set(destination.urls) <= set(self.default.urls)
        name = self.variable if is_configured else f"{OPTIONS}.server_url"
        url = next((url for url in destination.urls if str(error).startswith(url)), destination.urls[0])
        return SettingsError(f"{error}; {wrong_url_remedy(url, name)}", name)

    def destination(self, extra: Mapping[str, Any]) -> Destination:
        """Return the servers and the key for a sample with this `extra_info`.

        Raises:
            RequestError: `server_url` is not a URL, or `api_key` is not a string.
            SettingsError: neither the sample nor the configuration sets a server.
        """
        destination = self._requested(Fields(extra)) if "server_url" in extra or "api_key" in extra else self.default
        if not destination.urls:
            raise SettingsError(f"{self.variable} is not set; {self._start}", self.variable)
        return destination

    def _requested(self, fields: Fields) -> Destination:
        """Return the destination of a sample that sets a server, a key or both."""
        url, api_key = fields.text("server_url", ""), fields.text("api_key", "")
        urls = _parse_urls(url) if url else self.default.urls
        known = set(urls) <= set(self.default.urls)
        return Destination(urls, api_key or (self.default.api_key if known else ""))


def _parse_urls(text: str) -> tuple[str, ...]:
    """Parse a sample's server URLs; raise RequestError if a URL or the proxy setting for it is invalid."""
    field = f"{OPTIONS}.server_url"
    try:
        urls = parse_urls(text, field)
    except SettingsError as error:
        raise RequestError(str(error), field) from error
    try:
        for url in urls:
            find_proxy(url)
    except SettingsError as error:
        raise RequestError(f"{field}: {error}", field) from error
    return urls
