"""The settings of the stack: `.env`, and the variables of the environment that beat it.

Every default stands in `.env`; here stands what each value must look like and which service is given it.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from services.native import dotenv
from services.native.errors import StackError

Check = Callable[[str], object]
"""Raises ValueError, saying what is expected, for a malformed value."""

SIZE = re.compile(r"[1-9][0-9]*(kb|mb|gb)", re.IGNORECASE)
URL_SAFE = re.compile(r"[A-Za-z0-9._~-]*")
WAYS = ("", "native", "compose")


def _whole(low: int, high: int) -> Check:
    def check(value: str) -> None:
        if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
            raise ValueError(f"a whole number from {low} to {high}")

    return check


def _maybe(check: Check) -> Check:
    def check_unless_empty(value: str) -> None:
        if value:
            check(value)

    return check_unless_empty


def _matches(pattern: re.Pattern[str], expected: str) -> Check:
    def check(value: str) -> None:
        if not pattern.fullmatch(value):
            raise ValueError(expected)

    return check


def _address(value: str) -> None:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        raise ValueError("an IP address such as 127.0.0.1 or 0.0.0.0") from None


def _way(value: str) -> None:
    if value not in WAYS:
        raise ValueError("native, compose, or empty to choose")


def _anything(value: str) -> None:
    if "\n" in value or "\0" in value:
        raise ValueError("one line of text")


CHECKS: dict[str, Check] = {
    "STACK": _way,
    "RUN_DIR": _matches(re.compile(r"\S+"), "a path"),
    "UP_TIMEOUT": _whole(1, 86_400),
    "BIND_ADDRESS": _address,
    "REWARD_PORT": _whole(1, 65_535),
    "GATEWAY_TIMEOUT": _whole(1, 86_400),
    "MAX_BODY_BYTES": _whole(1024, 2**40),
    "CACHE_PORT": _whole(1, 65_535),
    "CACHE_PASSWORD": _matches(URL_SAFE, "letters, digits and . _ ~ -, which a Redis URL can hold"),
    "CACHE_MAX_MEMORY": _matches(SIZE, "a size such as 512mb or 2gb"),
    "REWARD_CACHE_TTL": _whole(1, 10**9),
    "REWARD_CACHE_ITEMS": _whole(0, 10**9),
    "REWARD_WORKERS": _whole(1, 1024),
    "REWARD_THREADS": _whole(1, 4096),
    "REWARD_GRACEFUL_TIMEOUT": _whole(1, 3600),
    "VERIFY_TIMEOUT": _whole(1, 3600),
    "VERIFY_PROCESSES": _maybe(_whole(1, 1024)),
    "REWARD_TYPE": _matches(re.compile(r"\S+"), "the name of a reward function or route"),
    "REWARD_FUNCTIONS": _anything,
    "DATASET_PATH": _anything,
    "GOLDEN_THRESHOLD": _matches(re.compile(r"1|0?\.\d*[1-9]\d*"), "a number above 0 and at most 1"),
    "REWARDSTACK_ROUTES": _anything,
    "REWARD_SERVER_API_KEYS": _anything,
}
"""Every setting of `.env`, and what its value must look like."""

RENAMED = {
    "PORT": "REWARD_PORT",
    "REWARD_SERVER_PORT": "REWARD_PORT",
    "GATEWAY_PORT": "REWARD_PORT",
    "REWARD_BIND_ADDRESS": "BIND_ADDRESS",
    "REDIS_PORT": "CACHE_PORT",
    "REDIS_PASSWORD": "CACHE_PASSWORD",
    "REDIS_MAXMEMORY": "CACHE_MAX_MEMORY",
    "REWARD_API_KEYS": "REWARD_SERVER_API_KEYS",
    "REWARD_MAX_BODY_BYTES": "MAX_BODY_BYTES",
    "RULES_WORKERS": "REWARD_WORKERS",
}
"""Names under which these settings are known elsewhere, and theirs here."""

OURS = ("REWARD_", "GATEWAY_")
"""Other software sets the other old names too, so in the environment they are no mistake."""

SERVICE_LINK = "tcp://"
"""Kubernetes sets a variable such as GATEWAY_PORT=tcp://10.0.0.1:80 in every pod beside a service of that name."""

GIVEN_TO = {
    "rules": (
        "DATASET_PATH",
        "GOLDEN_THRESHOLD",
        "MAX_BODY_BYTES",
        "PROMETHEUS_MULTIPROC_DIR",
        "REWARDSTACK_ROUTES",
        "REWARD_CACHE_ITEMS",
        "REWARD_CACHE_TTL",
        "REWARD_CACHE_URL",
        "REWARD_FUNCTIONS",
        "REWARD_GRACEFUL_TIMEOUT",
        "REWARD_SERVER_API_KEYS",
        "REWARD_SOCKET",
        "REWARD_THREADS",
        "REWARD_TYPE",
        "REWARD_WORKERS",
        "VERIFY_PROCESSES",
        "VERIFY_TIMEOUT",
    )
}
"""The variables that a service reads itself; the others get theirs in a configuration file."""


class Settings(dict[str, str]):
    """The value of every setting by name, each checked."""

    def number(self, name: str) -> int:
        """A setting that is a whole number."""
        return int(self[name])

    @property
    def url(self) -> str:
        """Where a client on this machine finds the gateway."""
        host = "localhost" if self.open_to_all or self["BIND_ADDRESS"] == "127.0.0.1" else self.gateway_host
        return f"http://{host}:{self['REWARD_PORT']}"

    @property
    def gateway_host(self) -> str:
        """The address the gateway listens on, an IPv6 one in brackets."""
        address = self["BIND_ADDRESS"]
        return f"[{address}]" if ":" in address else address

    @property
    def open_to_all(self) -> bool:
        """Whether the gateway listens on every address of the machine."""
        return ipaddress.ip_address(self["BIND_ADDRESS"]).is_unspecified

    @property
    def cache_url(self) -> str:
        """The stack's own Redis, with its password."""
        password = f":{self['CACHE_PASSWORD']}@" if self["CACHE_PASSWORD"] else ""
        return f"redis://{password}127.0.0.1:{self['CACHE_PORT']}/0"


def load(root: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the tree at `root`.

    Raises:
        StackError: a setting is missing, unknown, renamed or malformed; the message names it.
    """
    written = dotenv.read(root / ".env")
    for name in written.keys() - CHECKS.keys():
        raise StackError(f".env: {name} is no setting{_renamed(name)}", "docs/settings.md lists all of them")
    for old, new in RENAMED.items():
        if old.startswith(OURS) and not environ.get(old, SERVICE_LINK).startswith(SERVICE_LINK):
            raise StackError(f"environment: {old} is no setting; it is called {new} here", f"set {new} instead")
    for name in CHECKS:
        if name not in written:
            raise StackError(f".env: {name} is missing", "put its line back; docs/settings.md has the default")
    settings = Settings({name: environ.get(name, value) for name, value in written.items()})
    for name, check in CHECKS.items():
        source = "environment" if name in environ else ".env"
        try:
            check(settings[name])
        except ValueError as error:
            shown = "its value" if name in ("CACHE_PASSWORD", "REWARD_SERVER_API_KEYS") else repr(settings[name])
            raise StackError(f"{source}: {name}: {shown} is not {error}") from None
    return settings


def run_dir(root: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The one setting that finding a running stack takes: another one that is wrong must not keep it from stopping.

    Raises:
        StackError: `.env` cannot be read, or does not name it.
    """
    if path := environ.get("RUN_DIR") or dotenv.read(root / ".env").get("RUN_DIR"):
        return path
    raise StackError(".env: RUN_DIR is missing", "put its line back; docs/settings.md has the default")


def _renamed(name: str) -> str:
    if name in RENAMED:
        return f"; it is called {RENAMED[name]} here"
    close = difflib.get_close_matches(name, CHECKS, n=1)
    return f"; did you mean {close[0]}?" if close else ""
