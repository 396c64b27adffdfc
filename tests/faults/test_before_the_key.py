"""What the gateway does with requests that have no valid key: it reads no body, and takes nobody's place for them."""

from __future__ import annotations

import socket
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from tests.faults.test_slow_clients import address_of, body
from tests.jobs.conftest import KEY, KEYS
from tests.native.nginx import Gateway, load
from tests.rules.conftest import RewardServer, running
from tests.support.dribble import Dribble
from tests.support.servers import FaultServer
from tests.support.table import Table
from tests.support.waiting import eventually

UPSTREAM = Path(__file__).parents[1] / "native/model_upstream.py"
LENGTH = 60_000_000
MODEL_KEY = "key-of-the-models"
ALL_KEYS = {
    "REWARD_SERVER_API_KEYS": KEYS,
    "LLM_JUDGE_SERVER_API_KEY": MODEL_KEY,
    "EMBEDDING_SERVER_API_KEY": MODEL_KEY,
}
PLACES = 4
"""Requests that one address may have in flight."""
SLOW_CLIENTS = 12

OPEN = {"rules": ["/", "/health", "/ready", "/gateway/health"], "judge": ["/health", "/judges/small/health"]}
OPEN |= {"embedding": ["/health", "/gateway/status"]}
"""Paths that are open to all, by service."""
GUARDED = {
    "rules": ["/v1/score", "/v1/explain", "/get_reward", "/verify", "/jobs", "/roll/submit", "/metrics", "/v1/status"],
    "judge": ["/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/metrics"],
    "embedding": ["/embed", "/v1/embeddings", "/similarity", "/tokenize", "/info", "/metrics"],
}
GUARDED["judge"] += [f"/judges/small{path}" for path in GUARDED["judge"]]
"""Paths that need a key, by service."""
SENT = {
    "long body": f"Content-Length: {LENGTH}",
    "short body": "Content-Length: 2",
    "body of unknown length": "Transfer-Encoding: chunked",
}
WRONG = {
    "no key": "",
    "wrong key": "Authorization: Bearer a-wrong-key-of-16",
    "empty key": "Authorization: Bearer ",
    "wrong password": f"Authorization: Basic {b64encode(b'any:a-wrong-key-of-16').decode()}",
    "key of another header": "X-Key: first-key-of-tests",
}


class Scene(NamedTuple):
    """A gateway before a reward server, a judge, a judge by name and an embedding server, all with keys."""

    gateway: Gateway
    rules: RewardServer
    models: list[FaultServer]
    folder: Path

    def url(self, service: str) -> str:
        """The address of a service."""
        return f"http://127.0.0.1:{self.gateway.ports[service]}"

    def stored(self) -> list[Path]:
        """Files of bodies and replies, without the answers about keys."""
        keys = self.folder / "tmp/keys"
        return [path for path in (self.folder / "tmp").rglob("*") if path.is_file() and path.parent != keys]


@pytest.fixture(scope="module")
def servers(
    needs_nginx: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RewardServer, list[FaultServer]]]:
    """A reward server, two judges and an embedding server."""
    with ExitStack() as stack:
        models = [FaultServer(script=UPSTREAM) for _ in range(3)]
        for server in models:
            stack.callback(server.kill)
            server.set(key=f"Bearer {MODEL_KEY}")
        folder = tmp_path_factory.mktemp("rules")
        yield stack.enter_context(running(folder, "--workers", "1", REWARD_SERVER_API_KEYS=KEYS)), models


@pytest.fixture
def scene(servers: tuple[RewardServer, list[FaultServer]], tmp_path: Path) -> Iterator[Scene]:
    """A gateway of the test's own, which knows nothing of the last test's clients."""
    rules, models = servers
    behind = {"rules": [rules.url.removeprefix("http://")]}
    addresses = [[f"127.0.0.1:{server.port}"] for server in models]
    behind |= dict(zip(("judge", "judge.small", "embedding"), addresses, strict=True))
    configured = load(**ALL_KEYS, GATEWAY_CLIENT_REQUESTS=PLACES, GATEWAY_TIMEOUT=20)
    gateway = Gateway(tmp_path, behind, configured, {"/judges/small": "judge.small"})
    yield Scene(gateway, rules, models, tmp_path)
    gateway.stop()


def head(method: str, path: str, *headers: str) -> bytes:
    """The head of a request whose body does not come."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *filter(None, headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status_of(url: str, data: bytes) -> int:
    """The status of the answer that comes though nothing more is sent; 0 where the connection is ended without one."""
    with socket.create_connection(address_of(url), 60) as client:
        client.sendall(data)
        words = client.makefile("rb").readline().split()
        return int(words[1]) if words else 0


def test_open_paths_take_no_body(scene: Scene, table: Table) -> None:
    """What is open to all is answered at once, with a refusal, where a body is to come, or another method."""
    for service, paths in OPEN.items():
        for path in paths:
            with table.case(f"GET {service} {path}"):
                expected = 401 if path == "/" else 200
                assert status_of(scene.url(service), head("GET", path)) == expected
            for method in ("POST", "PUT", "DELETE", "GET", "HEAD"):
                for name, header in SENT.items():
                    with table.case(f"{method} {service} {path} {name}"):
                        expected = 413 if method in ("GET", "HEAD") else 405
                        assert status_of(scene.url(service), head(method, path, header)) == expected
    assert scene.stored() == []


def test_key_before_the_body(scene: Scene, table: Table) -> None:
    """At each port, on each path, a request without a valid key is refused before its body comes.

    An address with many of them is told to wait.
    """
    tries = [(service, path, name) for service, paths in GUARDED.items() for path in paths for name in WRONG]

    def ask(service: str, path: str, name: str) -> int:
        return status_of(scene.url(service), head("POST", path, SENT["long body"], WRONG[name]))

    with ThreadPoolExecutor(40) as pool:
        for one, status in zip(tries, pool.map(lambda one: ask(*one), tries), strict=True):
            with table.case(" ".join(one)):
                assert status in (401, 429)
    assert scene.stored() == []


def test_nobody_is_let_in_unasked(needs_nginx: None, tmp_path: Path, table: Table) -> None:
    """Where the servers that know the keys are gone, no body is read either, and the client may try again."""
    gateway = Gateway(tmp_path, {service: ["127.0.0.1:9"] for service in GUARDED}, load(**ALL_KEYS))
    try:
        for service, paths in GUARDED.items():
            for name, header in SENT.items():
                with table.case(f"{service} {name}"):
                    url = f"http://127.0.0.1:{gateway.ports[service]}"
                    assert status_of(url, head("POST", paths[0], header)) == 502
    finally:
        gateway.stop()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_cannot_say(scene: Scene, status: int) -> None:
    """Nor is one let in by a server that is overloaded or broken."""
    judge = scene.models[0]
    judge.set(key="", mode=str(status))
    try:
        assert status_of(scene.url("judge"), head("POST", "/v1/completions", SENT["long body"])) == 502
    finally:
        judge.set(key=f"Bearer {MODEL_KEY}", mode="ok")


@pytest.mark.parametrize("service", ["rules", "judge", "embedding"])
def test_places_of_clients_with_a_key(scene: Scene, service: str) -> None:
    """However many slow requests without a valid key come from an address, those with one are answered."""
    slow = [head("POST", path, SENT["long body"], key) for path in GUARDED[service][:2] for key in WRONG.values()]
    slow += [head("POST", path, SENT["long body"]) for path in OPEN[service]]
    slow += [head("GET", path, "X: ").removesuffix(b"\r\n\r\n") for path in OPEN[service]]
    key = KEY if service == "rules" else {"Authorization": f"Bearer {MODEL_KEY}"}
    path = {"rules": "/v1/reward_types", "judge": "/v1/models", "embedding": "/info"}[service]
    with Dribble(address_of(scene.url(service)), slow, SLOW_CLIENTS * PLACES, pause=0.5):
        for _ in range(20):
            assert requests.get(scene.url(service) + path, headers=key, timeout=60).status_code == 200


def test_places_without_a_key(scene: Scene) -> None:
    """Requests without a valid key are counted too, and told so; those of clients with one are not among them."""
    replies: list[requests.Response] = []

    def are_too_many() -> bool:
        with ThreadPoolExecutor(40) as pool:
            sent = [pool.submit(requests.post, f"{scene.url('rules')}/v1/score", b"{}", timeout=60) for _ in range(40)]
            replies.extend(one.result() for one in sent)
        return any(reply.status_code == 429 for reply in replies)

    eventually(are_too_many)
    assert {reply.status_code for reply in replies} == {401, 429}
    refused = next(reply for reply in replies if reply.status_code == 429)
    assert (refused.headers["Retry-After"], "without a valid key" in refused.json()["error"]) == ("1", True)


def test_a_valid_key_is_not_checked_for_each_request(scene: Scene, table: Table) -> None:
    """A service is asked for a valid key once in a while, for a wrong one each time; one's validity helps no other."""
    judge, url = scene.models[0], f"{scene.url('judge')}/tokenize"
    valid = {"Authorization": f"Bearer {MODEL_KEY}"}

    def ask(headers: dict[str, str]) -> int:
        return requests.get(url, headers=headers, timeout=60).status_code

    def checks() -> int:
        return int(judge.stats().get("/v1/models", 0))

    before = checks()
    with table.case("a valid key"):
        assert [ask(valid) for _ in range(40)] == [200] * 40
        assert checks() - before < 20
    for name, headers in {
        "another case": {"Authorization": f"Bearer {MODEL_KEY.upper()}"},
        "a longer key": {"Authorization": f"Bearer {MODEL_KEY}x"},
        "in another header": {"X-API-Key": MODEL_KEY},
        "no key": {},
        "valid and wrong": {"Authorization": "Bearer a-wrong-key-of-16", "X-API-Key": f"Bearer {MODEL_KEY}"},
    }.items():
        with table.case(name):
            before = checks()
            assert [ask(headers), ask(headers)] == [401, 401]
            assert checks() - before == 2
    with table.case("the reward server"):
        assert requests.get(f"{scene.url('rules')}/v1/reward_types", headers=valid, timeout=60).status_code == 401
    with table.case("a key that is no longer valid"):
        assert ask(valid) == 200
        judge.set(key="Bearer another-key-of-16")
        try:
            eventually(lambda: ask(valid) == 401)
        finally:
            judge.set(key=f"Bearer {MODEL_KEY}")
    with table.case("who can read the keys"):
        assert requests.get(f"{scene.url('rules')}/v1/reward_types", headers=KEY, timeout=60).status_code == 200
        folder = scene.folder / "tmp/keys"
        stored = [*folder.iterdir()]
        assert stored and not any(path.stat().st_mode & 0o077 for path in (folder, *stored))


@pytest.mark.parametrize("path", ["/v1/score", "/", "/jobs"])
def test_wrong_keys_are_slowed(scene: Scene, path: str) -> None:
    """An address hears of ten wrong keys a second, the first twenty aside, wherever it sends them; right ones pass."""
    url, started, statuses = scene.url("rules"), time.monotonic(), Counter[int]()
    for number in range(2):
        assert requests.get(f"{url}/v1/status", headers=KEY, timeout=60).status_code == 200
        with ThreadPoolExecutor(30) as pool:
            password = b64encode(f"any:a-wrong-key-{number}".encode()).decode()
            wrong = {"Authorization": f"Basic {password}"}
            sent = [pool.submit(requests.get, url + path, headers=wrong, timeout=60) for _ in range(30)]
            statuses.update(one.result().status_code for one in sent)
    assert statuses.keys() <= {401, 405, 429}
    most = 21 + 10 * (time.monotonic() - started)
    assert statuses[401] + statuses[405] <= most


def test_no_body_is_stored(scene: Scene) -> None:
    """A large body with a key is in no file while it comes, and is scored."""
    data = body(LENGTH // 2)
    lines = head("POST", "/v1/score", f"Content-Length: {len(data)}", "X-API-Key: first-key-of-tests")
    with socket.create_connection(address_of(scene.url("rules")), 60) as client:
        client.sendall(lines + data[: LENGTH // 4])
        assert scene.stored() == []
        client.sendall(data[LENGTH // 4 :])
        assert client.makefile("rb").readline().split()[1] == b"200"


def test_a_browser_is_asked_for_a_password(scene: Scene) -> None:
    """The page's own words about the key pass the gateway."""
    refused = requests.get(f"{scene.url('rules')}/", timeout=60)
    assert (refused.status_code, "Basic" in refused.headers["WWW-Authenticate"]) == (401, True)
    shown = requests.get(f"{scene.url('rules')}/", auth=("any", "first-key-of-tests"), timeout=60)
    assert (shown.status_code, "text/html" in shown.headers["Content-Type"]) == (200, True)
