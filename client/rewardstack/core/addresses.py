"""Remove secrets from URLs for display, and suggest remedies for wrong URLs."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def shown_url(url: str) -> str:
    """Return `url` for display: user name and password become `***`, and query and fragment are removed."""
    parts = urlsplit(url)
    hidden = "***@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, hidden + parts.netloc.rpartition("@")[2], parts.path, "", ""))


def wrong_url_remedy(url: str, name: str) -> str:
    """Return a remedy for a base URL at which the expected service does not answer.

    Args:
        url: the base URL.
        name: what the user has to correct: the variable or field that sets the URL, or the URL itself.
    """
    path = urlsplit(url).path
    if path:
        return f"no service answers under the path {path}; remove it from {name}, unless a gateway uses it as a prefix"
    return f"another service answers there; correct host and port in {name}"
