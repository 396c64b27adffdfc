"""The client's settings: the one place that reads the environment.

Trainers set variables late and tests change them, so they are read on every call; unchanged ones cost a comparison.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit

from rewardstack.errors import SettingsError

DEFAULTS = {
    "REWARD_SERVER_URL": "",
    "REWARD_SERVER_API_KEY": "",
    "REWARD_SERVER_TIMEOUT": "60",
    "REWARD_TYPE": "math_verifier",
    "LLM_JUDGE_SERVER_URL": "",
    "LLM_JUDGE_SERVER_API_KEY": "",
    "LLM_JUDGE_SERVER_TIMEOUT": "60",
    "LLM_JUDGE_MODEL": "",
    "JUDGE_REVISION": "",
    "REWARDSTACK_RUN_ID": "",
    "EMBEDDING_SERVER_URL": "",
    "EMBEDDING_SERVER_API_KEY": "",
    "EMBEDDING_SERVER_TIMEOUT": "30",
    "REWARD_CACHE_URL": "",
    "REWARD_CACHE_TTL": "604800",
    "REWARD_CACHE_ITEMS": "100000",
    "REWARDSTACK_ROUTES": "",
    "REWARDSTACK_MAX_RETRIES": "3",
    "REWARDSTACK_MAX_CONNECTIONS": "1028",
}
"""Every variable the client reads, and its value where it is unset or empty."""

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says.

    Args:
        reward_server_urls: base URLs of equivalent reward servers.
        reward_server_api_key: sent to those servers only.
        reward_server_timeout: seconds a sample may wait for progress.
        reward_type: the reward function where a call names none.
        judge_urls: base URLs of equivalent LLM judges.
        judge_api_key: sent to those judges only.
        judge_timeout: seconds a sample may wait for a judge's progress.
        judge_model: the model that judges; empty for the one that the server serves.
        judge_revision: the operator's name for the state of the judge, part of the cache key.
        run_id: of the training run within which a stochastic judge's verdict is remembered; empty for this process.
        embedding_urls: base URLs of equivalent embedding servers.
        embedding_api_key: sent to those servers only.
        embedding_timeout: seconds a sample may wait for an embedding server's progress.
        cache_url: the Redis that holds results; empty for none.
        cache_ttl: seconds a result stays there.
        cache_items: results kept in this process, in front of Redis.
        routes_file: file of further routes; empty for none.
        max_retries: further attempts for a request that failed otherwise than by overload.
        max_connections: requests in flight to one endpoint.
    """

    reward_server_urls: tuple[str, ...]
    reward_server_api_key: str
    reward_server_timeout: float
    reward_type: str
    judge_urls: tuple[str, ...]
    judge_api_key: str
    judge_timeout: float
    judge_model: str
    judge_revision: str
    run_id: str
    embedding_urls: tuple[str, ...]
    embedding_api_key: str
    embedding_timeout: float
    cache_url: str
    cache_ttl: int
    cache_items: int
    routes_file: str
    max_retries: int
    max_connections: int

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> Settings:
        """The settings of this moment.

        Raises:
            SettingsError: a variable is malformed; the message names it.
        """
        return _parse(tuple(environ.get(name) or default for name, default in DEFAULTS.items()))


@lru_cache(maxsize=16)
def _parse(values: tuple[str, ...]) -> Settings:
    raw = dict(zip(DEFAULTS, values, strict=True))
    return Settings(
        reward_server_urls=parse_urls(raw["REWARD_SERVER_URL"], "REWARD_SERVER_URL"),
        reward_server_api_key=raw["REWARD_SERVER_API_KEY"],
        reward_server_timeout=parse_number(raw, "REWARD_SERVER_TIMEOUT", float),
        reward_type=raw["REWARD_TYPE"],
        judge_urls=parse_urls(raw["LLM_JUDGE_SERVER_URL"], "LLM_JUDGE_SERVER_URL"),
        judge_api_key=raw["LLM_JUDGE_SERVER_API_KEY"],
        judge_timeout=parse_number(raw, "LLM_JUDGE_SERVER_TIMEOUT", float),
        judge_model=raw["LLM_JUDGE_MODEL"],
        judge_revision=raw["JUDGE_REVISION"],
        run_id=raw["REWARDSTACK_RUN_ID"],
        embedding_urls=parse_urls(raw["EMBEDDING_SERVER_URL"], "EMBEDDING_SERVER_URL"),
        embedding_api_key=raw["EMBEDDING_SERVER_API_KEY"],
        embedding_timeout=parse_number(raw, "EMBEDDING_SERVER_TIMEOUT", float),
        cache_url=parse_redis_url(raw["REWARD_CACHE_URL"], "REWARD_CACHE_URL"),
        cache_ttl=parse_number(raw, "REWARD_CACHE_TTL", int),
        cache_items=parse_number(raw, "REWARD_CACHE_ITEMS", int, above=-1),
        routes_file=raw["REWARDSTACK_ROUTES"],
        max_retries=parse_number(raw, "REWARDSTACK_MAX_RETRIES", int, above=-1),
        max_connections=parse_number(raw, "REWARDSTACK_MAX_CONNECTIONS", int),
    )


def parse_urls(text: str, name: str) -> tuple[str, ...]:
    """Base URLs from a comma-separated list.

    Args:
        text: such as `http://a:6000,http://b:6000/`.
        name: of the variable or field it comes from, for the error.

    Raises:
        SettingsError: one of them is not an http or https URL.
    """
    urls = [part.strip().rstrip("/") for part in text.split(",") if part.strip()]
    for url in urls:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            usable = usable and not (parts.query or parts.fragment)
        except ValueError:
            usable = False
        if "@" in url:
            raise SettingsError(f"{name}: a URL holds a password; keys go into the variable for API keys", name)
        if not usable:
            raise SettingsError(f"{name}: {url!r} is no URL; write it like http://localhost:6000", name)
    return tuple(dict.fromkeys(urls))


def parse_redis_url(url: str, name: str) -> str:
    """The URL of a Redis; empty for none.

    Args:
        url: such as `redis://localhost:6379/0`.
        name: of the variable it comes from, for the error, which does not show the URL: it can hold a password.

    Raises:
        SettingsError: it is not one.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("redis", "rediss", "unix") and parts.port != 0
    except ValueError:
        usable = False
    if url and not usable:
        raise SettingsError(f"{name} is no Redis URL; write it like redis://localhost:6379/0", name)
    return url


def parse_number(
    raw: Mapping[str, str], name: str, kind: Callable[[str], N], above: int = 0, most: float = math.inf
) -> N:
    """A number among settings.

    Args:
        raw: the settings' texts by name.
        name: of the one to read.
        kind: `int` or `float`.
        above: what it must be greater than.
        most: what it may be at most.

    Raises:
        SettingsError: it is no such number; the message names it and its bounds.
    """
    try:
        value = kind(raw[name])
        usable = math.isfinite(value) and above < value <= most
    except (ValueError, OverflowError):
        usable = False
    if not usable:
        what = "a whole number" if kind is int else "a number"
        bound = "" if math.isinf(most) else f" and at most {most:g}"
        raise SettingsError(f"{name}: {raw[name]!r} is not {what} above {above}{bound}", name)
    return value
