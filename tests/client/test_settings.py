"""The environment's variables: what they mean, and what is said where one is malformed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rewardstack.cache.store import ResultCache
from rewardstack.errors import SettingsError
from rewardstack.settings import DEFAULTS, Settings, parse_urls, read_api_key, warn_of_misspelled
from services.stack.settings_table import TABLE
from tests.support.endpoints import write_endpoints
from tests.support.table import Table


def test_empty_environment() -> None:
    """With nothing set there is no server, no cache and no file of routes, and the timeout is a minute."""
    settings = Settings.from_env({})
    assert ((), "", (), 60.0) == (
        settings.reward_server_urls,
        settings.cache_url,
        settings.routes_files,
        settings.reward_server_timeout,
    )
    assert ("math_verifier", 3, 1028) == (settings.reward_type, settings.max_retries, settings.max_connections)


def test_empty_variables() -> None:
    """A variable that is set to nothing counts as unset."""
    assert Settings.from_env({}) == Settings.from_env(dict.fromkeys(DEFAULTS, ""))


def test_misspelled_variables(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, table: Table) -> None:
    """A variable that is nearly one of the client's is named once, unless that one is set; no other variable is."""
    meant = {
        "LLM_JUDGE_SERVER_ULR": "LLM_JUDGE_SERVER_URL",
        "LLM_JUGDE_SERVER_URL": "LLM_JUDGE_SERVER_URL",
        "EMBEDING_SERVER_URL": "EMBEDDING_SERVER_URL",
        "REWARD_SERVER_API_KYE": "REWARD_SERVER_API_KEY",
        "REWARDSTACK_TIMOUT": "REWARD_SERVER_TIMEOUT",
        "REWARDSTACK_URL": "REWARD_SERVER_URL",
        "REWARDSTACK_ROUTE": "REWARDSTACK_ROUTES",
        "REWARD_SERVER": "REWARD_SERVER_URL",
        "LLM_JUDGE_URL": "LLM_JUDGE_SERVER_URL",
    }
    links = [f"{name}_SERVER_{end}" for name in ("REWARD", "LLM_JUDGE") for end in ("PORT", "HOST", "SERVICE_PORT")]
    unrelated = ["REWARD_MODEL_PATH", "EMBEDDING_URL", "LLM_MODEL", "REWARD_CACHE_DIR", *links]
    known = [name for one in TABLE for name in (one, f"{one}_FILE")]

    def warnings(*names: str) -> list[str]:
        with monkeypatch.context() as patch:
            for name in (*DEFAULTS, *meant):
                patch.delenv(name, raising=False)
            for name in names:
                patch.setenv(name, DEFAULTS.get(name, ""))
            patch.setattr("rewardstack.settings._reported", set())
            warn_of_misspelled.cache_clear()
            caplog.clear()
            Settings.from_env()
            Settings.from_env()
        return caplog.messages

    for wrong, right in meant.items():
        with table.case(wrong):
            assert warnings(wrong) == [f"unknown variable {wrong!r}: did you mean {right!r}?"]
            assert warnings(wrong, right) == []
    for name in (*unrelated, *known):
        with table.case(name):
            assert warnings(name) == []


def test_every_variable_is_read(tmp_path: Path) -> None:
    """Each variable changes the settings, so none is listed in vain."""
    write_endpoints(tmp_path / "endpoints.json")
    other = {
        "REWARD_SERVER_URL": "http://a:6000",
        "REWARD_SERVER_API_KEY": "key",
        "REWARD_SERVER_TIMEOUT": "90",
        "REWARD_SERVER_REFUSED_TIMEOUT": "90",
        "REWARD_MODEL_SERVER_URL": "http://a:8001",
        "REWARD_MODEL_SERVER_API_KEY": "key",
        "REWARD_MODEL_SERVER_TIMEOUT": "90",
        "REWARD_TYPE": "gsm8k",
        "CODE_SANDBOX_URL": "http://a:6001",
        "CODE_SANDBOX_API_KEY": "key",
        "LLM_JUDGE_SERVER_URL": "http://a:8000",
        "LLM_JUDGE_SERVER_API_KEY": "key",
        "LLM_JUDGE_RAY_ACTOR": "judge",
        "REWARDSTACK_TRANSCRIPT": "chatml",
        "LLM_JUDGE_HEADERS": "api-key: key",
        "LLM_JUDGE_QUERY": "api-version=2024-10-21",
        "LLM_JUDGE_SERVER_TIMEOUT": "90",
        "LLM_JUDGE_SERVER_REFUSED_TIMEOUT": "90",
        "LLM_JUDGE_MODEL": "model",
        "JUDGE_REVISION": "2",
        "REWARDSTACK_RUN_ID": "run",
        "REWARDSTACK_MAX_REQUESTS": "1",
        "REWARDSTACK_MAX_TOKENS": "1",
        "EMBEDDING_SERVER_URL": "http://a:8080",
        "EMBEDDING_SERVER_API_KEY": "key",
        "EMBEDDING_SERVER_TIMEOUT": "90",
        "EMBEDDING_SERVER_REFUSED_TIMEOUT": "90",
        "REWARD_CACHE": "off",
        "REWARD_CACHE_URL": "redis://:password@localhost:6379/0",
        "REWARD_CACHE_SECRET": "secret",
        "REWARD_CACHE_TTL": "60",
        "REWARD_CACHE_ITEMS": "0",
        "REWARDSTACK_ENDPOINTS": str(tmp_path / "endpoints.json"),
        "REWARDSTACK_ROUTES": "routes.toml",
        "REWARDSTACK_SAMPLE_LOG": "samples.jsonl",
        "REWARDSTACK_SAMPLE_LOG_SHARE": "0.5",
        "REWARDSTACK_MAX_RETRIES": "0",
        "REWARDSTACK_MAX_FAILURE_RATE": "0.5",
        "REWARDSTACK_FAILURE_WINDOW": "9",
        "REWARDSTACK_MAX_CONNECTIONS": "1",
    }
    assert DEFAULTS.keys() == other.keys()
    assert [] == [name for name, value in other.items() if Settings.from_env({name: value}) == Settings.from_env({})]


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("", ()),
        (" , ", ()),
        ("http://a:6000", ("http://a:6000",)),
        ("http://a:6000/", ("http://a:6000",)),
        ("https://a/rewards/", ("https://a/rewards",)),
        ("http://a:6000/v1,http://a:6000/v1/", ("http://a:6000",)),
        ("https://a/api/v1/judge", ("https://a/api/v1/judge",)),
        ("http://[::1]:6000", ("http://[::1]:6000",)),
        ("http://a:6000, http://b:6000,", ("http://a:6000", "http://b:6000")),
        ("http://a:6000,http://a:6000/", ("http://a:6000",)),
    ],
)
def test_url_list(text: str, urls: tuple[str, ...]) -> None:
    """URLs stand in a list with commas; blanks, final slashes and `/v1`, and repetitions do not matter."""
    assert urls == parse_urls(text, "REWARD_SERVER_URL")


def test_cache_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Redis library is missing, a cache URL is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(SettingsError, match=r"^REWARD_CACHE_URL: .*pip install .redis\[hiredis\]."):
        ResultCache(Settings.from_env({"REWARD_CACHE_URL": "redis://localhost:6379/0"}))


def test_changes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable changed after the first reading counts."""
    assert "math_verifier" == Settings.from_env().reward_type
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")
    assert "gsm8k" == Settings.from_env().reward_type


@pytest.mark.parametrize(
    ("name", "text", "pairs"),
    [
        ("LLM_JUDGE_HEADERS", "", ()),
        ("LLM_JUDGE_HEADERS", "api-key: k", (("api-key", "k"),)),
        ("LLM_JUDGE_HEADERS", "A=1, B = x=y:z,", (("A", "1"), ("B", "x=y:z"))),
        ("LLM_JUDGE_HEADERS", "A: 1,2\nB: 3\n", (("A", "1,2"), ("B", "3"))),
        ("LLM_JUDGE_QUERY", "api-version=2024-10-21", (("api-version", "2024-10-21"),)),
        ("LLM_JUDGE_QUERY", "a=1&b=", (("a", "1"), ("b", ""))),
    ],
)
def test_pairs(name: str, text: str, pairs: tuple[tuple[str, str], ...]) -> None:
    """Headers and query parameters are pairs, a line each or separated; a name ends at the first `:` or `=`."""
    settings = Settings.from_env({name: text})
    assert pairs == (settings.judge_headers if name == "LLM_JUDGE_HEADERS" else settings.judge_query)


@pytest.mark.parametrize("text", ["hush", "a b: hush", "A: hush\rB: c", ": hush"])
def test_pairs_refused(text: str) -> None:
    """What is no list of pairs is refused by name, without being shown."""
    with pytest.raises(SettingsError, match="LLM_JUDGE_HEADERS: its value is not a list") as refused:
        Settings.from_env({"LLM_JUDGE_HEADERS": text})
    assert "hush" not in str(refused.value)


def test_key_of_the_users_variable(tmp_path: Path) -> None:
    """A judge's key is what the variable that is named holds, or the file that the one with _FILE names."""
    file = tmp_path / "key"
    file.write_text("from-a-file\n")
    assert read_api_key("MY_KEY", {"MY_KEY": "plain", "MY_KEY_FILE": str(file)}) == "plain"
    assert read_api_key("MY_KEY", {"MY_KEY_FILE": str(file)}) == "from-a-file"
    for environ, words in (({}, "MY_KEY is not set"), ({"MY_KEY_FILE": "/nowhere"}, "MY_KEY_FILE: /nowhere cannot")):
        with pytest.raises(SettingsError, match=words):
            read_api_key("MY_KEY", environ)
