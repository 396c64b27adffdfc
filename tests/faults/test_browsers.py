"""What web pages cannot do through the browser of somebody who reaches the server."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from tests.jobs.conftest import KEY, KEYS, sample
from tests.native.nginx import Gateway, load
from tests.rules.conftest import running
from tests.support.servers import FaultServer
from tests.support.table import Table

UPSTREAM = Path(__file__).parents[1] / "native/model_upstream.py"
HOSTS = "rewards.example.org,.cluster.example.org"
"""Those that the servers here are told."""
KNOWN = [
    *(
        "localhost",
        "localhost:6000",
        "127.0.0.1",
        "127.0.0.1:6000",
        "10.0.0.5:6000",
        "[::1]:6000",
        "[fd00::1]",
        "gateway",
    ),
    *("rewards", "r-gateway.ml.svc:6000", "r-gateway.ml.svc.cluster.local", "host.docker.internal:6000"),
    *("rewards.example.org", "REWARDS.example.org:443", "rewards.example.org.", "node-7.cluster.example.org"),
    *(socket.gethostname(), f"{socket.gethostname()}.local"),
]
FOREIGN = [
    *("rebind.evil.example", "rebind.evil.example:6000", "REBIND.EVIL.EXAMPLE", "evil.example.", "evil.dev"),
    *("127.0.0.1.evil.example", "localhost.evil.example", "rewards.example.org.evil.example", "127.0.0.1.nip.io"),
    *("example.org", "evilrewards.example.org", "cluster.example.org.evil.example", "evil-cluster.example.org"),
    *("internal.evil.example", "svc.example", "0x7f000001.evil.example"),
]
CROSS_SITE: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Origin": "http://evil.example"},
    {"Origin": "https://evil.example:6000"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://localhost:1"},
    {"Origin": "null"},
]
SAME_SITE: list[dict[str, str]] = [
    {},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://localhost"},
    {"Origin": "https://LOCALHOST"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.an.ingress.example"},
]
"""To the host `localhost`."""
SCORE = {"items": [sample(2)]}


class Ports(NamedTuple):
    """Addresses of a reward server without keys, of gateways before it and before one with keys, and of models."""

    alone: str
    rules: str
    page: str
    guarded: str
    judge: str
    embedding: str


@pytest.fixture(scope="module")
def ports(needs_nginx: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """The servers behind them are gone afterwards."""
    folder, guarded = (tmp_path_factory.mktemp(name) for name in ("open", "guarded"))
    models = [FaultServer(script=UPSTREAM) for _ in range(2)]
    with (
        running(folder, "--workers", "1", ALLOWED_HOSTS=HOSTS) as rules,
        running(guarded, REWARD_SERVER_API_KEYS=KEYS) as locked,
    ):
        behind = {"rules": [rules.url.removeprefix("http://")]}
        behind |= {name: [f"127.0.0.1:{one.port}"] for name, one in zip(("judge", "embedding"), models, strict=True)}
        one = Gateway(folder / "gateway", behind, load(ALLOWED_HOSTS=HOSTS))
        keyed = load(REWARD_SERVER_API_KEYS=KEYS)
        other = Gateway(guarded / "gateway", {"rules": [locked.url.removeprefix("http://")]}, keyed)
        urls = {service: f"http://127.0.0.1:{port}" for service, port in one.ports.items()}
        yield Ports(rules.url, guarded=f"http://127.0.0.1:{other.ports['rules']}", **urls)
        one.stop()
        other.stop()
    for model in models:
        model.kill()


def test_names_of_an_open_server(ports: Ports, table: Table) -> None:
    """A server without keys answers to names that nobody else can have lead there, and to those of ALLOWED_HOSTS."""
    asked = [(ports.alone, "/v1/status"), (ports.rules, "/v1/status"), (ports.judge, "/v1/models")]
    asked += [(ports.rules, "/"), (ports.embedding, "/info")]
    for host in (*KNOWN, *FOREIGN):
        for url, path in asked:
            with table.case(f"{host} {path} {asked.index((url, path))}"):
                reply = requests.get(url + path, headers={"Host": host}, timeout=60)
                assert reply.status_code == (200 if host in KNOWN else 403), reply.text
                if host in FOREIGN:
                    assert (reply.json()["field"], "ALLOWED_HOSTS" in reply.json()["error"]) == ("Host", True)


@pytest.mark.parametrize("way", ["alone", "rules"])
def test_rebinding_scores_nothing(ports: Ports, way: str) -> None:
    """A page whose own name leads to the server scores nothing, and starts no job, with its own origin."""
    page = {"Host": "rebind.evil.example:6000", "Origin": "http://rebind.evil.example:6000"}
    for path in ("/v1/score", "/get_reward", "/jobs", "/v1/explain"):
        reply = requests.post(getattr(ports, way) + path, json=SCORE, headers=page, timeout=60)
        assert (reply.status_code, reply.json()["field"]) == (403, "Host")


def test_names_of_a_server_with_keys(ports: Ports) -> None:
    """With keys any name will do: no page knows one."""
    reply = requests.get(f"{ports.guarded}/v1/status", headers={**KEY, "Host": "rewards.company.example"}, timeout=60)
    assert reply.status_code == 200


def test_requests_across_sites(ports: Ports, table: Table) -> None:
    """What a browser sends for a page of another site is refused where it changes or reads; its own is not."""
    job = "0" * 32
    asked = [("POST", "/v1/score", 200), ("GET", "/v1/status", 200), ("GET", f"/jobs/{job}/results", 503)]
    asked += [("DELETE", f"/jobs/{job}", 503)]
    for url in (ports.alone, ports.rules):
        for headers in (*CROSS_SITE, *SAME_SITE):
            for method, path, status in asked:
                with table.case(f"{method} {path} {headers} {url == ports.alone}"):
                    sent = {"Host": "localhost", **headers}
                    body = SCORE if method == "POST" else None
                    reply = requests.request(method, url + path, json=body, headers=sent, timeout=60)
                    assert reply.status_code == (403 if headers in CROSS_SITE else status), reply.text


def test_models_across_sites(ports: Ports, table: Table) -> None:
    """No page of another site asks a judge or an embedding server, whose own replies let any site read them."""
    for url, paths in (
        (ports.judge, ("/v1/chat/completions", "/v1/completions")),
        (ports.embedding, ("/embed", "/info")),
    ):
        for headers in (*CROSS_SITE, *SAME_SITE):
            for path in paths:
                with table.case(f"{path} {headers}"):
                    reply = requests.post(url + path, b"{}", headers={"Host": "localhost", **headers}, timeout=60)
                    assert reply.status_code == (403 if headers in CROSS_SITE else 200), reply.text


@pytest.mark.parametrize("headers", CROSS_SITE[:4])
def test_a_remembered_password(ports: Ports, headers: dict[str, str]) -> None:
    """A form of another site starts no job with the password that the browser remembers."""
    password = {"Authorization": f"Basic {b64encode(b'any:first-key-of-tests').decode()}"}
    form = {"file": ("samples.jsonl", b"{}\n")}
    reply = requests.post(f"{ports.guarded}/jobs", files=form, headers={**password, **headers}, timeout=60)
    assert (reply.status_code, "another site" in reply.json()["error"]) == (403, True)


def test_links_to_the_page(ports: Ports) -> None:
    """Other sites may link to the status page, whose reader sees it; who is asked for a password is asked."""
    link = {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert [requests.get(f"{url}/", headers=link, timeout=60).status_code for url in (ports.rules, ports.guarded)] == [
        200,
        401,
    ]
