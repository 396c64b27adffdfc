"""Remove secrets from URLs, for display."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def shown_url(url: str) -> str:
    """Return `url` without user name, password and query, which may be secret."""
    parts = urlsplit(url)
    hidden = "***@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, hidden + parts.netloc.rpartition("@")[2], parts.path, "", ""))
