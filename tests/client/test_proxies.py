"""Which proxy a request takes."""

from __future__ import annotations

import pytest

from rewardstack.transport.http import proxy_of


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://rewards.example:6000/v1/score", "http://proxy.example:3128"),
        ("https://rewards.example/v1/score", None),
        ("http://localhost:6000/v1/score", None),
        ("http://inside.cluster.local:6000/v1/score", None),
    ],
)
def test_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None) -> None:
    """The environment's proxy for the URL's scheme is taken, but for hosts that NO_PROXY names."""
    for name in ("HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "localhost,.cluster.local")
    proxy_of.cache_clear()
    assert proxy == proxy_of(url)
    proxy_of.cache_clear()
