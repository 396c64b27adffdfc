"""What `make up` says at its end."""

from __future__ import annotations

import pytest

from services.stack.rundir import ROOT
from services.stack.settings import load
from services.up import summary
from tests.support.secret_settings import all_secrets

URLS = {"REWARD_SERVER_URL": "http://localhost:6000", "LLM_JUDGE_SERVER_URL": "http://localhost:8000"}


def said(capsys: pytest.CaptureFixture[str], **values: str) -> str:
    """By a stack with these settings."""
    summary.print_summary(load(ROOT, values), URLS, "somewhere")
    return capsys.readouterr().out


def test_open_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """A gateway that other machines reach is warned of where a service asks for no key, and each is named."""
    open_to_all = said(capsys, BIND_ADDRESS="0.0.0.0", REWARD_SERVER_API_KEYS="a-key-of-the-tests")
    assert "warning: LLM_JUDGE_SERVER_API_KEY is empty" in open_to_all
    assert "warning: REWARD_SERVER_API_KEYS" not in open_to_all
    assert "warning" not in said(capsys)


def test_status_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The status page's address is on the port that browsers open, and missing where there is no reward server."""
    assert "status page  http://localhost:8601/\n" in said(capsys, PAGE_PORT="8601")
    summary.print_summary(load(ROOT, {}), {"LLM_JUDGE_SERVER_URL": "http://localhost:8000"}, "somewhere")
    assert "status page" not in capsys.readouterr().out


def test_no_key_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """It says which keys a client needs, and shows none."""
    shown = said(capsys, **all_secrets("sesame"))
    assert "export REWARD_SERVER_API_KEY=..." in shown and "sesame" not in shown


def test_routes(capsys: pytest.CaptureFixture[str]) -> None:
    """A trainer is told the file of routes that the stack has, by a path that holds in any folder."""
    shown = said(capsys, REWARDSTACK_ROUTES="examples/routes.toml")
    assert f"export REWARDSTACK_ROUTES={ROOT / 'examples/routes.toml'}" in shown
    assert "REWARDSTACK_ROUTES" not in said(capsys)


def test_what_the_judge_wants(capsys: pytest.CaptureFixture[str]) -> None:
    """Headers and query parameters that the stack's judge is sent are named for clients, and not shown."""
    shown = said(capsys, LLM_JUDGE_HEADERS="api-key: sesame", LLM_JUDGE_QUERY="tenant=7")
    assert "export LLM_JUDGE_HEADERS=..." in shown and "export LLM_JUDGE_QUERY=..." in shown
    assert "sesame" not in shown and "tenant=7" not in shown
    assert "LLM_JUDGE_HEADERS" not in said(capsys)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"http_proxy": "http://proxy.example:3128"}, True),
        ({"all_proxy": "http://proxy.example:3128"}, True),
        ({"http_proxy": "http://proxy.example:3128", "no_proxy": "localhost"}, False),
        ({"https_proxy": "http://proxy.example:3128"}, False),
    ],
)
def test_a_proxy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], told: bool
) -> None:
    """Where other programs would ask a proxy for the stack, the line that keeps them from it is shown."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert told == ('export no_proxy="localhost,127.0.0.1,$no_proxy"' in said(capsys))


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("SmolLM2-135M-Instruct", True),
        ("Qwen/Qwen3-0.6B", True),
        ("Qwen/Qwen3-32B", False),
        ("Qwen/Qwen3-30B-A3B", False),
        ("org/judge-v2", False),
        ("", False),
    ],
)
def test_a_small_judge(model: str, small: bool) -> None:
    """A model is small where its name gives it less than two billion parameters."""
    assert summary.is_small(model) == small
