"""Reads the client's settings from the environment; other modules of the client get them from here.

`settings_table` declares the settings: names, defaults and bounds. `Settings.from_env` reads the variables on every
call, because trainers may set them after the import of this module. It parses them again only if one has changed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from rewardstack.endpoints import VARIABLE as ENDPOINTS
from rewardstack.endpoints import EndpointsFile
from rewardstack.errors import SettingsError
from rewardstack.settings_table import TABLE
from rewardstack_settings.kinds import Urls
from rewardstack_settings.setting import InvalidSetting, Setting, find_misspelled, settings_for

MAX_REQUESTS = "REWARDSTACK_MAX_REQUESTS"
MAX_TOKENS = "REWARDSTACK_MAX_TOKENS"
RAY_ACTOR = "LLM_JUDGE_RAY_ACTOR"
TRANSCRIPT = "REWARDSTACK_TRANSCRIPT"
MAX_FAILURE_RATE = "REWARDSTACK_MAX_FAILURE_RATE"
FAILURE_WINDOW = "REWARDSTACK_FAILURE_WINDOW"

READ = settings_for(TABLE, "client")
"""The settings that the client reads, by variable name."""
DEFAULTS = {name: setting.default for name, setting in READ.items()}
"""The defaults of these settings, as text."""
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
"""Maps variables to fields of `Settings`. If `REWARDSTACK_ENDPOINTS` names a file, these variables are read from this
file instead of the environment."""
SERVER_VARIABLES = ("REWARD_SERVER_API_KEYS",)
"""Variables of the reward server that look like misspelled variables of the client, but are not reported as such."""

_reported: set[str] = set()
"""Misspelled variables that this process has already logged."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """The client's settings.

    Args:
        reward_server_urls: base URLs of equivalent reward servers.
        reward_server_api_key: API key that is sent to those servers only.
        reward_server_timeout: seconds that a sample waits for a reward server that makes no progress.
        reward_server_refused_timeout: seconds to wait while connections are refused; None for `reward_server_timeout`.
        reward_type: default reward function of `rule_remote.py`, and default route for trainers such as OpenRLHF.
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
        run_id: ID of the run; processes with the same ID share budgets, and cached verdicts that are not deterministic.
            Empty to share neither.
        max_requests: maximum requests of a run to model servers (judges, reward models and embedding servers); 0 for no
            limit.
        max_tokens: maximum sum of the prompt and completion tokens that model servers report for a run; 0 for no limit.
        reward_model_urls: base URLs of equivalent reward models.
        reward_model_api_key: API key that is sent to those servers only.
        reward_model_timeout: seconds that a sample waits for a reward model that makes no progress.
        embedding_urls: base URLs of equivalent embedding servers.
        embedding_api_key: API key that is sent to those servers only.
        embedding_timeout: seconds that a sample waits for an embedding server that makes no progress.
        embedding_refused_timeout: seconds to wait while connections are refused.
        is_cache_enabled: whether results are cached, in Redis or in memory.
        cache_url: URL of the cache's Redis; empty for none.
        cache_secret: secret that signs results in Redis; empty for no signatures.
        cache_ttl: seconds that a result stays in Redis.
        cache_items: maximum results in this process's memory.
        endpoints: path of the file that sets the variables in `SERVERS`; empty to use the environment.
        routes_files: paths of files with custom routes.
        sample_log: path of the file for scored samples; empty for none.
        sample_log_share: share of the samples to write to `sample_log`, from 0 to 1.
        max_retries: maximum retries of a request after error replies (500) or invalid replies.
        max_connections: maximum requests in flight to one endpoint.
        max_failure_rate: share of recent samples that may fail, from 0 to 1; 1 for no limit.
        failure_window: number of recent samples to which `max_failure_rate` applies.
        transcript: how to split responses into turns (`rewardstack_verifier.transcript.TRANSCRIPTS`).
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
    is_cache_enabled: bool
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
    transcript: str

    @property
    def cache_key_settings(self) -> dict[str, str]:
        """The settings that are part of cache keys, by variable name."""
        return {"LLM_JUDGE_MODEL": self.judge_model, "JUDGE_REVISION": self.judge_revision}

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> Settings:
        """Return the current settings.

        Raises:
            SettingsError: a variable is malformed or contradicts another variable, or the `endpoints` file is invalid;
                the error names the variable.
        """
        if environ is os.environ:
            warn_of_misspelled()
        settings = _parse(tuple(environ.get(name, "") for name in READ))
        if not settings.endpoints:
            return settings
        if also_set := [name for name in (*SERVERS, RAY_ACTOR) if environ.get(name)]:
            message = f"{ENDPOINTS} and {also_set[0]} are both set, but only one may name the servers"
            raise SettingsError(f"{message}; unset one of them", also_set[0])
        return settings.with_current_servers()

    def with_current_servers(self) -> Settings:
        """Return the settings with the current servers of the `endpoints` file, if there is one.

        Raises:
            SettingsError: the file is invalid, and no valid content was read before.
        """
        if not self.endpoints:
            return self
        servers = _endpoints_file(self.endpoints).servers()
        return replace(self, **{field: servers[name] for name, field in SERVERS.items()})


@cache
def warn_of_misspelled(names: tuple[str, ...] = tuple(READ)) -> None:
    """Log each environment variable that looks like a misspelled setting, once per process.

    Args:
        names: the settings that this process reads.
    """
    for name, meant in misspelled_variables(names).items():
        if name not in _reported:
            _reported.add(name)
            log.warning("unknown variable %r: did you mean %r?", name, meant)


def misspelled_variables(names: Iterable[str] = READ) -> dict[str, str]:
    """Return a dict from each misspelled environment variable to the setting that is probably meant.

    Args:
        names: the settings that may be meant; those that are set are skipped. `REWARDSTACK_URL` counts as a misspelling
            of `REWARD_SERVER_URL`.
    """
    unset = [name for name in names if name not in os.environ]
    short = {name.replace("REWARD_SERVER_", "REWARDSTACK_"): name for name in unset}
    return find_misspelled(os.environ, short | {name: name for name in unset}, {*names, *TABLE, *SERVER_VARIABLES})


def default_reward_type() -> str:
    """Return the value of `REWARD_TYPE`: the reward function of calls that name none.

    If the variable is not set, return its default, and log a warning once per process.
    """
    if not os.environ.get("REWARD_TYPE"):
        _warn_of_default()
    return Settings.from_env().reward_type


@cache
def _warn_of_default() -> None:
    log.warning(
        "REWARD_TYPE is not set and a call names no reward function, so the default %s is used, which expects <think> "
        "and <answer> tags; set REWARD_TYPE, or name a function in the call",
        TABLE["REWARD_TYPE"].default,
    )


@lru_cache(maxsize=16)
def _endpoints_file(path: str) -> EndpointsFile:
    return EndpointsFile(Path(path), {name: READ[name] for name in SERVERS})


@lru_cache(maxsize=16)
def _parse(texts: tuple[str, ...]) -> Settings:
    values = read(READ, dict(zip(READ, texts, strict=True)))
    servers = {field: values[name] for name, field in SERVERS.items()}
    if values[RAY_ACTOR]:
        servers["judge_urls"] = _actor_address(values)
    return Settings(
        **servers,
        reward_server_timeout=values["REWARD_SERVER_TIMEOUT"],
        reward_server_refused_timeout=values["REWARD_SERVER_REFUSED_TIMEOUT"],
        reward_type=values["REWARD_TYPE"],
        code_sandbox_urls=values["CODE_SANDBOX_URL"],
        code_sandbox_api_key=values["CODE_SANDBOX_API_KEY"],
        judge_headers=values["LLM_JUDGE_HEADERS"],
        judge_query=values["LLM_JUDGE_QUERY"],
        judge_timeout=values["LLM_JUDGE_SERVER_TIMEOUT"],
        judge_refused_timeout=values["LLM_JUDGE_SERVER_REFUSED_TIMEOUT"],
        judge_model=values["LLM_JUDGE_MODEL"],
        judge_revision=values["JUDGE_REVISION"],
        run_id=values["REWARDSTACK_RUN_ID"],
        max_requests=values[MAX_REQUESTS],
        max_tokens=values[MAX_TOKENS],
        reward_model_timeout=values["REWARD_MODEL_SERVER_TIMEOUT"],
        embedding_timeout=values["EMBEDDING_SERVER_TIMEOUT"],
        embedding_refused_timeout=values["EMBEDDING_SERVER_REFUSED_TIMEOUT"],
        is_cache_enabled=values["REWARD_CACHE"] == "on",
        cache_secret=values["REWARD_CACHE_SECRET"],
        cache_ttl=values["REWARD_CACHE_TTL"],
        cache_items=values["REWARD_CACHE_ITEMS"],
        endpoints="".join(map(str, values[ENDPOINTS])),
        routes_files=tuple(map(str, values["REWARDSTACK_ROUTES"])),
        sample_log=values["REWARDSTACK_SAMPLE_LOG"],
        sample_log_share=values["REWARDSTACK_SAMPLE_LOG_SHARE"],
        max_retries=values["REWARDSTACK_MAX_RETRIES"],
        max_connections=values["REWARDSTACK_MAX_CONNECTIONS"],
        max_failure_rate=values[MAX_FAILURE_RATE],
        failure_window=values[FAILURE_WINDOW],
        transcript=values[TRANSCRIPT],
    )


def _actor_address(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the address of a judge that is a Ray actor; raise SettingsError if judge URLs are set as well."""
    if values["LLM_JUDGE_SERVER_URL"]:
        message = f"{RAY_ACTOR} and LLM_JUDGE_SERVER_URL are both set, but only one may name the judge"
        raise SettingsError(f"{message}; unset one of them", RAY_ACTOR)
    address: tuple[str, ...] = values[RAY_ACTOR]
    return address


def read(settings: Mapping[str, Setting], texts: Mapping[str, str]) -> dict[str, Any]:
    """Parse settings and return their values by name.

    Args:
        settings: the settings to read, by name.
        texts: the values as text, by name; the default is used if a text is missing or empty.

    Raises:
        SettingsError: a value is malformed; the error names the setting.
    """
    try:
        return {name: setting.read(texts.get(name, "")) for name, setting in settings.items()}
    except InvalidSetting as error:
        raise SettingsError(str(error), error.name) from None


def read_api_key(variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the API key in an environment variable, or in the file that the variable with the suffix `_FILE` names.

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
    urls: tuple[str, ...] = read({name: Setting(name, "", Urls(), (), "")}, {name: text})[name]
    return urls
