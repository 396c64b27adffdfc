"""The real LiteLLM proxy before scripted providers: every sample of a judge with the default options has a score."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from rewardstack import Request, client, register_judge, score
from rewardstack.settings import DEFAULTS
from tests.litellm.upstream import OVERLOADED, Upstream, handler
from tests.support.servers import free_port
from tests.support.table import Table
from tests.support.threaded import serving

ROOT = Path(__file__).resolve().parents[2]
LITELLM = ROOT / ".litellm/bin/litellm"
MODELS = {
    "anthropic": ("anthropic/claude-opus-4-5", "/anthropic"),
    "openai": ("openai/gpt-5", "/openai/v1"),
    "deepseek": ("deepseek/deepseek-chat", "/deepseek"),
    "gemini": ("gemini/gemini-2.5-flash", "/gemini/models/gemini-2.5-flash"),
}
OVERLOAD_SECONDS = 20
KEY = f"sk-{uuid.uuid4().hex}"
"""Key of the proxy, which does not start without one."""
pytestmark = [pytest.mark.model, pytest.mark.nightly, pytest.mark.timeout(600)]


class Proxy(NamedTuple):
    """The proxy's URL, and the providers behind it."""

    url: str
    upstream: Upstream


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Run LiteLLM, which `make model-tests t=litellm` installs, with its default settings."""
    if not LITELLM.exists():
        pytest.skip("LiteLLM is not installed: run make model-tests t=litellm")
    upstream, folder = Upstream(), tmp_path_factory.mktemp("litellm")
    with serving(handler(upstream)) as url:
        models = "".join(
            f"- model_name: {name}\n  litellm_params: {{model: {model}, api_base: '{url}{path}', api_key: sk-any}}\n"
            for name, (model, path) in MODELS.items()
        )
        (folder / "config.yaml").write_text(f"model_list:\n{models}")
        port = free_port()
        command: list[str | Path] = [
            LITELLM,
            "--config",
            folder / "config.yaml",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)
        try:
            wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
            yield Proxy(f"http://127.0.0.1:{port}", upstream)
        finally:
            process.terminate()
            process.wait(60)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a URL answers, or the process ends."""
    while process.poll() is None:
        try:
            if requests.get(url, timeout=10).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.5)
    pytest.fail(f"LiteLLM does not start: {log.read_text()[-2000:]}")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the developer's settings and judges."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_registered", {})
    monkeypatch.setenv("REWARD_CACHE", "off")
    monkeypatch.setenv("LITELLM_KEY", KEY)


def outcomes(name: str) -> list[tuple[str, float | None, str]]:
    """Return status, value and reason of 200 samples."""
    samples = [Request(name, f"It is {number}.", "42", {"problem": "6*7?", "timeout": 300}) for number in range(200)]
    return [(one.status, one.value, one.reason[:300]) for one in score(samples, on_error="none")]


def test_every_provider(proxy: Proxy, table: Table) -> None:
    """200 of 200 samples have a score with the default options."""
    for name in MODELS:
        with table.case(name):
            register_judge(name, {"base_url": proxy.url, "model": name, "api_key_env": "LITELLM_KEY"})
            assert {("ok", 0.8, "")} == set(outcomes(name))
            assert 200 <= proxy.upstream.answers[name] <= 220


def test_overload(proxy: Proxy, table: Table) -> None:
    """200 of 200 samples have a score, too, if the providers are overloaded for the first 20 seconds."""
    for name in OVERLOADED:
        with table.case(name):
            register_judge(f"busy_{name}", {"base_url": proxy.url, "model": name, "api_key_env": "LITELLM_KEY"})
            proxy.upstream.overloaded_until = time.monotonic() + OVERLOAD_SECONDS
            assert {("ok", 0.8, "")} == set(outcomes(f"busy_{name}"))
