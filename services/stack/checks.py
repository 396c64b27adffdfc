"""What the value of a setting must look like: each check raises ValueError, saying what is expected."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable
from urllib.parse import urlsplit

Check = Callable[[str], object]
"""Raises ValueError for a malformed value."""

COMMENT = re.compile(r"\s[;#]")


def whole(low: int, high: int) -> Check:
    """A whole number within bounds."""

    def check(value: str) -> None:
        if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
            raise ValueError(f"a whole number from {low} to {high}")

    return check


def maybe(check: Check) -> Check:
    """Empty, or what another check takes."""

    def check_unless_empty(value: str) -> None:
        if value:
            check(value)

    return check_unless_empty


def matches(pattern: str, expected: str, flags: int = 0) -> Check:
    """Text that a pattern matches as a whole; `expected` says so in words."""
    compiled = re.compile(pattern, flags)

    def check(value: str) -> None:
        if not compiled.fullmatch(value):
            raise ValueError(expected)

    return check


def one_of(*values: str) -> Check:
    """One of a few words; an empty one among them leaves the choice to the stack."""
    words = [value for value in values if value] + (["empty to choose"] if "" in values else [])

    def check(value: str) -> None:
        if value not in values:
            raise ValueError(f"{', '.join(words[:-1])} or {words[-1]}")

    return check


def address(value: str) -> None:
    """An IP address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        raise ValueError("an IP address such as 127.0.0.1 or 0.0.0.0") from None


def anything(value: str) -> None:
    """One line of text."""
    if "\n" in value or "\0" in value:
        raise ValueError("one line of text")


def urls(value: str) -> None:
    """Base URLs, separated by commas."""
    for url in filter(None, (part.strip() for part in value.split(","))):
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in url
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("a list of URLs such as http://node-7:8000")


def flags(value: str) -> None:
    """Command line flags as one would type them."""
    anything(value)
    try:
        shlex.split(value)
    except ValueError:
        raise ValueError("a list of flags: a quote does not end") from None
    # supervisord's configuration takes what follows for a comment, quoted or not.
    if COMMENT.search(value):
        raise ValueError("a list of flags: neither ; nor # can follow a space")
