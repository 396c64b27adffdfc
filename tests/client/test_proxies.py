"""Which proxy a request takes, and what errors say of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rewardstack import Request, score
from rewardstack.errors import OverloadError, ServiceError, SettingsError, UnreachableError
from rewardstack.remote_rm_client import RemoteRewardModel
from rewardstack.transport.http import display_url, find_proxy, open_session, send
from rewardstack.transport.message import get_body
from tests.support.servers import free_port
from tests.support.table import Table

PROXY = "http://proxy.example:3128"
REWARDS = "http://rewards.example:6000"
HERE = ("localhost", "localhost.", "LOCALHOST", "a.localhost", "127.0.0.1", "127.8.9.1", "0.0.0.0", "[::1]")
HERE_BY_IPV4 = "[::ffff:127.0.0.1]"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy but those of the test, and none remembered from or for another."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    find_proxy.cache_clear()
    display_url.cache_clear()
    yield
    find_proxy.cache_clear()
    display_url.cache_clear()


@pytest.fixture
def refusing() -> Iterator[str]:
    """A proxy that answers every request with a page that says 503, and to come back tomorrow."""

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            page = b"<!DOCTYPE html><html><head><title>503 no way out</title></head><body><h1>No</h1></body></html>"
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(503)
            self.send_header("Content-Length", str(len(page)))
            self.send_header("Retry-After", "86400")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://me:secret@127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


PROXIES: list[tuple[str, str | None]] = [
    (f"{REWARDS}/v1/score", PROXY),
    ("http://localhost.example:6000/v1/score", PROXY),
    ("https://rewards.example/v1/score", None),
    ("http://inside.cluster.local:6000/v1/score", None),
    ("http://me:secret@inside.cluster.local:6000/v1/score", None),
    ("http://10.1.2.3:6000/v1/score", None),
    ("http://11.1.2.3:6000/v1/score", PROXY),
    ("http://[fd00::7]:6000/v1/score", None),
    *((f"http://{host}:6000/v1/score", None) for host in (*HERE, HERE_BY_IPV4)),
]


def test_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """The environment's proxy for the URL's scheme is used, but not for this machine, nor for what NO_PROXY names."""
    monkeypatch.setenv("http_proxy", PROXY)
    monkeypatch.setenv("no_proxy", ".cluster.local, 10.0.0.0/8, [fd00::7]")
    for url, proxy in PROXIES:
        with table.case(url):
            assert proxy == find_proxy(url)


@pytest.mark.parametrize("given", [PROXY, PROXY.removeprefix("http://")])
def test_a_proxy_for_all_schemes(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """ALL_PROXY is taken where the scheme has no proxy of its own, with or without `http://`."""
    monkeypatch.setenv("ALL_PROXY", given)
    monkeypatch.setenv("HTTPS_PROXY", "http://other.example:1")
    assert [PROXY, "http://other.example:1"] == [find_proxy(REWARDS), find_proxy("https://rewards.example")]


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_none_for_http(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """A SOCKS proxy is an error that names its variable before anything is sent, and none for what needs no proxy."""
    monkeypatch.setenv(variable, "socks5://me:secret@proxy.example:1080")
    monkeypatch.setenv("REWARD_SERVER_URL", REWARDS)
    with pytest.raises(SettingsError, match=f"{variable}: socks5:// is not an HTTP.* rewards.example to NO_PROXY"):
        score([Request("gsm8k", "#### 5", "5")])
    with pytest.raises(SettingsError, match=variable):
        RemoteRewardModel(f"{REWARDS}/get_reward")
    monkeypatch.setenv("NO_PROXY", "rewards.example")
    assert find_proxy("http://localhost:6000") is None and find_proxy(REWARDS) is None


@pytest.mark.parametrize("given", ["http://proxy.example:port", "http://", "http://me:secret@:3128"])
def test_a_proxy_without_an_address(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """A proxy with no host, or a port that is no number, is an error that names its variable and no password."""
    monkeypatch.setenv("HTTP_PROXY", given)
    monkeypatch.setenv("REWARD_SERVER_URL", REWARDS)
    with pytest.raises(SettingsError, match="HTTP_PROXY: not a proxy address, .* the form http://HOST:PORT") as it:
        score([Request("gsm8k", "#### 5", "5")])
    assert "secret" not in str(it.value)


def test_the_way_to_a_samples_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cannot be used on the way to a sample's own server leaves that sample without a score, no other."""
    monkeypatch.setenv("HTTP_PROXY", "socks5://proxy.example:1080")
    urls = ("http://other.example:8080", f"http://127.0.0.1:{free_port()}")
    extras = [{"server_url": url, "timeout": 0.3} for url in urls]  # expires
    texts = [Request("embedding_remote", "a", "a", extra_info=extra) for extra in extras]
    refused, tried = score(texts)
    assert (refused.status, tried.status) == ("unscored", "fallback")
    assert refused.reason.startswith("extra_info.server_url: HTTP_PROXY: socks5:// is not an HTTP proxy")


def test_errors_name_the_proxy(monkeypatch: pytest.MonkeyPatch, refusing: str) -> None:
    """What a proxy answers, and that none is there, is told with the proxy's address, without its password or HTML."""
    monkeypatch.setenv("http_proxy", refusing)
    place = refusing.partition("@")[2]
    error = _error(_posted())
    assert isinstance(error, OverloadError)
    assert str(error) == f"{REWARDS}/v1/score (through the proxy http://{place}) returned 503: 503 no way out"

    nobody = f"http://me:secret@127.0.0.1:{free_port()}"
    monkeypatch.setenv("http_proxy", nobody)
    find_proxy.cache_clear()
    display_url.cache_clear()
    error = _error(_posted())
    place = nobody.partition("@")[2]
    assert isinstance(error, UnreachableError)
    assert f"{REWARDS}/v1/score (through the proxy http://{place}): the proxy refuses the connection" in str(error)


def test_align_anythings_client(monkeypatch: pytest.MonkeyPatch, refusing: str) -> None:
    """Align-Anything's client uses the same proxies, names them too, and asks none for this machine."""
    monkeypatch.setenv("http_proxy", refusing)
    place = refusing.partition("@")[2]
    with pytest.raises(ServiceError, match=rf"{REWARDS}/get_reward \(through the proxy http://{place}\) returned 503"):
        RemoteRewardModel(f"{REWARDS}/get_reward").score(["p"], ["r"])
    with pytest.raises(ServiceError, match=r"http://localhost:\d+/get_reward: connection refused"):
        RemoteRewardModel(f"http://localhost:{free_port()}/get_reward", timeout=5).score(["p"], ["r"])


async def _posted() -> bytes:
    async with open_session() as session:
        return get_body(await send(session, "POST", f"{REWARDS}/v1/score?key=secret", b"{}", {}))


def _error(asked: Coroutine[Any, Any, bytes]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        asyncio.run(asked)
    assert "secret" not in str(caught.value) and "<" not in str(caught.value)
    return caught.value
