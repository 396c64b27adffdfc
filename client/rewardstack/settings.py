"""The client's settings: the one place that reads the environment.

Names, defaults and bounds are those of `settings_table`. Trainers set variables late and tests change them, so the
variables are read on every call; if none has changed, a call only compares them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from rewardstack.endpoints import VARIABLE as ENDPOINTS
from rewardstack.endpoints import EndpointsFile
from rewardstack.errors import SettingsError
from rewardstack.settings_table import TABLE
from rewardstack_settings.kinds import Urls
from rewardstack_settings.setting import Malformed, Setting, find_misspelled, read_by

MAX_REQUESTS = "REWARDSTACK_MAX_REQUESTS"
MAX_TOKENS = "REWARDSTACK_MAX_TOKENS"
RAY_ACTOR = "LLM_JUDGE_RAY_ACTOR"
MAX_FAILURE_RATE = "REWARDSTACK_MAX_FAILURE_RATE"
FAILURE_WINDOW = "REWARDSTACK_FAILURE_WINDOW"

READ = read_by(TABLE, "client")
"""All variables that the client reads, by name."""
DEFAULTS = {name: setting.default for name, setting in READ.items()}
"""The defaults of these variables, as text."""
SERVERS = {
    "REWARD_SERVER_URL": "reward_server_urls",
    "REWARD_SERVER_API_KEY": "reward_server_api_key",
    "LLM_JUDGE_SERVER_URL": "judge_urls",
    "LLM_JUDGE_SERVER_API_KEY": "judge_api_key",
    "REWARD_MODEL_SERVER_URL": "reward_model_urls",
    "REWARD_MODEL_SERVER_API_KEY": "reward_model_api_key",
    "EMBEDDING_SERVER_URL": "embedding_urls",
    "EMBEDDING_SERVER_API_KEY": "embedding_api_key",
    "REWARD_CACHE_URL": "cache_url",
}
"""The variables that a file of `REWARDSTACK_ENDPOINTS` sets instead of the environment, and their `Settings` fields."""
OTHERS = ("REWARD_SERVER_API_KEYS",)
"""Variables of the reward server that are similar to one of the client's."""
SPELLINGS = {name.replace("REWARD_SERVER_", "REWARDSTACK_"): name for name in READ} | {name: name for name in READ}
"""The variables by their names, and by wrong names that come to mind, such as `REWARDSTACK_URL`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """The client's settings.

    Args:
        reward_server_urls: base URLs of equivalent reward servers.
        reward_server_api_key: API key that is sent to those servers only.
        reward_server_timeout: seconds that a sample waits for a reward server that makes no progress.
        reward_server_refused_timeout: seconds to wait while connections are refused; None for `reward_server_timeout`.
        reward_type: default reward function.
        code_sandbox_urls: base URLs of equivalent servers that run programs.
        code_sandbox_api_key: API key that is sent to those servers only.
        judge_urls: base URLs of equivalent LLM judges, or the address of a Ray actor.
        judge_api_key: API key that is sent to those judges only.
        judge_headers: names and values of HTTP headers that are sent to those judges only.
        judge_query: names and values of query parameters that are sent to those judges only.
        judge_timeout: seconds that a sample waits for a judge that makes no progress.
        judge_refused_timeout: seconds to wait while connections are refused; None for `judge_timeout`.
        judge_model: the judge's model; empty for the model that the server serves.
        judge_revision: a label to change when the judge changes; part of the cache key.
        run_id: id of the run; processes with the same one share sampled verdicts and budgets; empty: shared with none.
        max_requests: maximum requests of a run to judges and embedding servers; 0 for no limit.
        max_tokens: maximum tokens of a run, prompt and completion together; 0 for no limit.
        reward_model_urls: base URLs of equivalent reward models.
        reward_model_api_key: API key that is sent to those servers only.
        reward_model_timeout: seconds that a sample waits for a reward model that makes no progress.
        embedding_urls: base URLs of equivalent embedding servers.
        embedding_api_key: API key that is sent to those servers only.
        embedding_timeout: seconds that a sample waits for an embedding server that makes no progress.
        embedding_refused_timeout: seconds to wait while connections are refused.
        cache_on: whether the cache is enabled.
        cache_url: URL of the cache's Redis; empty for none.
        cache_secret: secret that signs results in Redis; empty for no signatures.
        cache_ttl: seconds that a result stays in Redis.
        cache_items: maximum results in this process's memory.
        endpoints: path of a file that sets `SERVERS`, and is read again when it changes; empty for the environment.
        routes_files: paths of files with custom routes.
        sample_log: path of the file for scored samples; empty for none.
        sample_log_share: share of the samples to write to it, from 0 to 1.
        max_retries: maximum retries of a request after error replies (500) or invalid replies.
        max_connections: maximum requests in flight to one endpoint.
        max_failure_rate: share of the last `failure_window` samples that may fail, from 0 to 1; 1 for no limit.
        failure_window: number of last samples for `max_failure_rate`.
    """

    reward_server_urls: tuple[str, ...]
    reward_server_api_key: str
    reward_server_timeout: float
    reward_server_refused_timeout: float | None
    reward_type: str
    code_sandbox_urls: tuple[str, ...]
    code_sandbox_api_key: str
    judge_urls: tuple[str, ...]
    judge_api_key: str
    judge_headers: tuple[tuple[str, str], ...]
    judge_query: tuple[tuple[str, str], ...]
    judge_timeout: float
    judge_refused_timeout: float | None
    judge_model: str
    judge_revision: str
    run_id: str
    max_requests: int
    max_tokens: int
    reward_model_urls: tuple[str, ...]
    reward_model_api_key: str
    reward_model_timeout: float
    embedding_urls: tuple[str, ...]
    embedding_api_key: str
    embedding_timeout: float
    embedding_refused_timeout: float
    cache_on: bool
    cache_url: str
    cache_secret: str
    cache_ttl: int
    cache_items: int
    endpoints: str
    routes_files: tuple[str, ...]
    sample_log: str
    sample_log_share: float
    max_retries: int
    max_connections: int
    max_failure_rate: float
    failure_window: int

    @property
    def keyed(self) -> dict[str, str]:
        """The settings that are part of cache keys, by variable name."""
        return {"LLM_JUDGE_MODEL": self.judge_model, "JUDGE_REVISION": self.judge_revision}

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> Settings:
        """Return the current settings.

        Raises:
            SettingsError: a variable is malformed, or the file of servers is invalid; the error names the variable.
        """
        if environ is os.environ:
            _warn_of_misspelled()
        settings = _parse(tuple(environ.get(name, "") for name in READ))
        if not settings.endpoints:
            return settings  # the common case, on the path of every call
        if beside := [name for name in (*SERVERS, RAY_ACTOR) if environ.get(name)]:
            both = f"{ENDPOINTS} and {beside[0]} are both set, but only one may name the servers"
            raise SettingsError(f"{both}; unset one of them", beside[0])
        return settings.follow()

    def follow(self) -> Settings:
        """Return the settings with the current servers of the `endpoints` file, if there is one.

        Raises:
            SettingsError: the file is invalid, and no earlier content is known.
        """
        if not self.endpoints:
            return self
        found = _file(self.endpoints).servers()
        return replace(self, **{field: found[name] for name, field in SERVERS.items()})


@cache
def _warn_of_misspelled() -> None:
    """Log the variables of the environment that look like misspelled settings, once per process."""
    unset = {spelling: name for spelling, name in SPELLINGS.items() if name not in os.environ}
    for name, meant in find_misspelled(os.environ, unset, {*READ, *OTHERS}).items():
        log.warning("unknown variable %r: did you mean %r?", name, meant)


@lru_cache(maxsize=16)
def _file(path: str) -> EndpointsFile:
    return EndpointsFile(Path(path), {name: READ[name] for name in SERVERS})


@lru_cache(maxsize=16)
def _parse(texts: tuple[str, ...]) -> Settings:
    value = read(READ, dict(zip(READ, texts, strict=True)))
    servers = {field: value[name] for name, field in SERVERS.items()}
    if value[RAY_ACTOR]:
        servers["judge_urls"] = _actor_alone(value)
    return Settings(
        **servers,
        reward_server_timeout=value["REWARD_SERVER_TIMEOUT"],
        reward_server_refused_timeout=value["REWARD_SERVER_REFUSED_TIMEOUT"],
        reward_type=value["REWARD_TYPE"],
        code_sandbox_urls=value["CODE_SANDBOX_URL"],
        code_sandbox_api_key=value["CODE_SANDBOX_API_KEY"],
        judge_headers=value["LLM_JUDGE_HEADERS"],
        judge_query=value["LLM_JUDGE_QUERY"],
        judge_timeout=value["LLM_JUDGE_SERVER_TIMEOUT"],
        judge_refused_timeout=value["LLM_JUDGE_SERVER_REFUSED_TIMEOUT"],
        judge_model=value["LLM_JUDGE_MODEL"],
        judge_revision=value["JUDGE_REVISION"],
        run_id=value["REWARDSTACK_RUN_ID"],
        max_requests=value[MAX_REQUESTS],
        max_tokens=value[MAX_TOKENS],
        reward_model_timeout=value["REWARD_MODEL_SERVER_TIMEOUT"],
        embedding_timeout=value["EMBEDDING_SERVER_TIMEOUT"],
        embedding_refused_timeout=value["EMBEDDING_SERVER_REFUSED_TIMEOUT"],
        cache_on=value["REWARD_CACHE"] == "on",
        cache_secret=value["REWARD_CACHE_SECRET"],
        cache_ttl=value["REWARD_CACHE_TTL"],
        cache_items=value["REWARD_CACHE_ITEMS"],
        endpoints="".join(map(str, value[ENDPOINTS])),
        routes_files=tuple(map(str, value["REWARDSTACK_ROUTES"])),
        sample_log=value["REWARDSTACK_SAMPLE_LOG"],
        sample_log_share=value["REWARDSTACK_SAMPLE_LOG_SHARE"],
        max_retries=value["REWARDSTACK_MAX_RETRIES"],
        max_connections=value["REWARDSTACK_MAX_CONNECTIONS"],
        max_failure_rate=value[MAX_FAILURE_RATE],
        failure_window=value[FAILURE_WINDOW],
    )


def _actor_alone(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the address of a judge that is a Ray actor; raise SettingsError if URLs are set as well."""
    if value["LLM_JUDGE_SERVER_URL"]:
        both = f"{RAY_ACTOR} and LLM_JUDGE_SERVER_URL are both set, but only one may name the judge"
        raise SettingsError(f"{both}; unset one of them", RAY_ACTOR)
    address: tuple[str, ...] = value[RAY_ACTOR]
    return address


def read(settings: Mapping[str, Setting], texts: Mapping[str, str]) -> dict[str, Any]:
    """Parse settings and return their values by name.

    Args:
        settings: the settings to read, by name.
        texts: the values as text, by name; a setting without a text, or with an empty one, has its default.

    Raises:
        SettingsError: a value is malformed; the error names the setting.
    """
    try:
        return {name: setting.read(texts.get(name, "")) for name, setting in settings.items()}
    except Malformed as error:
        raise SettingsError(str(error), error.name) from None


def key_in(variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the API key in a variable, or in the file that the variable with the suffix `_FILE` names.

    Raises:
        SettingsError: neither is set, the file cannot be read, or the key is not valid in a header.
    """
    file = environ.get(f"{variable}_FILE", "")
    try:
        key = (environ.get(variable, "") or (Path(file).read_text(encoding="utf-8") if file else "")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{variable}_FILE: {file} cannot be read: {error}", f"{variable}_FILE") from None
    if not key:
        raise SettingsError(f"{variable} is not set; set it to the API key, as the routes file requires", variable)
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(f"{variable} is not a valid key: it has control or non-ASCII characters", variable)
    return key


def parse_urls(text: str, name: str) -> tuple[str, ...]:
    """Parse a comma-separated list of base URLs.

    Args:
        text: URLs such as `http://a:6000,http://b:6000/`.
        name: the variable or field that has this text, for the error.

    Raises:
        SettingsError: an entry is not an http or https URL.
    """
    found: tuple[str, ...] = read({name: Setting(name, "", Urls(), (), "")}, {name: text})[name]
    return found
