"""What the server refuses: always JSON with `error` and `field`, never a 500, and nobody gets in without a key."""

from __future__ import annotations

import json
from base64 import b64encode
from itertools import product
from typing import Any

import pytest
import requests

from rewardstack.core.deadline import HEADER
from tests.rules.conftest import RewardServer
from tests.support.table import Table

JSON = {"Content-Type": "application/json"}
ITEM = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
PATHS = ["/v1/score", "/v1/explain", "/get_reward", "/roll/submit", "/roll/result"]
PATHS += ["/verify", "/seed_session", "/aggregate_metrics"]
DEEP = "[" * 100_000
NO_OBJECTS = [b"", b"{", b"null", b"[]", b"3", b'"a"', b"\xff\xfe\x00", DEEP.encode(), b'{"a": 1}}', b"\x00" * 100]


def refusal(reply: requests.Response) -> tuple[int, Any]:
    """Status and field of a refusal, whose body has no other keys."""
    assert list(reply.json()) == ["error", "field"]
    assert "Traceback" not in reply.text
    return reply.status_code, reply.json()["field"]


def test_bodies_that_are_no_objects(server: RewardServer, table: Table) -> None:
    """What is no JSON object is 400."""
    for path, data in product(PATHS, NO_OBJECTS):
        with table.case(f"{path} {data[:20]!r}"):
            assert refusal(server.post(path, data=data, headers=JSON)) == (400, "body")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_content_type(server: RewardServer, kind: str | None) -> None:
    """A body that does not say it is JSON is 415."""
    headers = {} if kind is None else {"Content-Type": kind}

    assert refusal(server.post("/get_reward", data=b"{}", headers=headers)) == (415, "Content-Type")


def test_compressed_body(server: RewardServer) -> None:
    """A compressed body is 415, and the message says what to do."""
    reply = server.post("/v1/score", data=b"\x1f\x8b", headers=JSON | {"Content-Encoding": "gzip"})

    assert refusal(reply) == (415, "Content-Encoding")
    assert "send the body uncompressed" in reply.json()["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "items"),
        ({"items": {}}, "items"),
        ({"items": None}, "items"),
        ({"items": [ITEM, 3]}, "items[1]"),
        ({"items": [None]}, "items[0]"),
        ({"items": [{}]}, "items[0].data_source"),
        ({"items": [ITEM | {"data_source": 7}]}, "items[0].data_source"),
        ({"itmes": [ITEM]}, "itmes"),
        ({"items": [ITEM, {"data_sorce": "gsm8k", "solution_str": "#### 1"}]}, "items[1].data_sorce"),
        ({"items": [{"data_source": "gsm8k", "solution_srt": "#### 1"}]}, "items[0].solution_srt"),
        ({"items": [ITEM | {"extra_infos": {}}]}, "items[0].extra_infos"),
        ({"items": [ITEM | {"extra_info": {"server_url": "http://x"}}]}, "items[0].extra_info.server_url"),
        ({"items": [ITEM, ITEM | {"extra_info": {"api_key": "k"}}]}, "items[1].extra_info.api_key"),
        ({"items": [ITEM | {"extra_info": {"template_path": "/etc/passwd"}}]}, "items[0].extra_info.template_path"),
        ({"items": [ITEM | {"extra_info": {"path": "/etc/passwd"}}]}, "items[0].extra_info.path"),
    ],
)
def test_malformed_score_requests(server: RewardServer, body: object, field: str) -> None:
    """A malformed request is 400, as is one that would have the server use a URL, a key or a file."""
    reply = server.post("/v1/score", body)

    assert refusal(reply) == (400, field)
    assert field.rpartition(".")[2] in reply.json()["error"]


@pytest.mark.parametrize("source", ["gsm9k", "rule_remote_", "rule_remote_nothing", "gsm8kx", "\ud800", "../etc"])
def test_unknown_source(server: RewardServer, source: str) -> None:
    """A source that nothing scores is 404, and the reply lists what is known."""
    reply = server.post("/v1/score", {"items": [ITEM, ITEM | {"data_source": source}]})

    assert refusal(reply)[0] == 404
    assert "gsm8k" in reply.json()["error"]


def test_reason(server: RewardServer) -> None:
    """The first line of a refusal says why, in ASCII, at most 200 characters, which nothing that is sent can break."""
    reply = server.post(
        "/get_reward?reward_type=a%0D%0AX-Evil:%20%C3%A4" + "b" * 300, {"query": ["q"], "prompts": ["p"]}
    )

    assert (reply.status_code, reply.reason.startswith("reward_type 'a"), len(reply.reason)) == (404, True, 200)
    assert reply.reason.isascii() and "X-Evil" not in reply.headers


@pytest.mark.parametrize("value", ["soon", "", "nan", "1 2", "-5", "inf", "1e400"])
def test_malformed_deadline(server: RewardServer, value: str) -> None:
    """A deadline that is no finite number of 0 or more is 400."""
    assert refusal(server.post("/v1/score", {"items": []}, headers={HEADER: value})) == (400, HEADER)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/get_rewards", 404),
        ("GET", "/get_reward", 405),
        ("DELETE", "/v1/score", 405),
        ("POST", "/health", 405),
        ("GET", "/static/../../etc/passwd", 404),
    ],
)
def test_unknown_endpoint(server: RewardServer, method: str, path: str, status: int) -> None:
    """Paths and methods that are not there are refused in JSON as well, with those that are."""
    reply = requests.request(method, server.url + path, timeout=60)

    assert refusal(reply)[0] == status
    remedy = "/get_reward, /health" if status == 404 else "; use GET" if method == "POST" else "; use POST"
    assert remedy in reply.json()["error"]


def test_missing_field(server: RewardServer) -> None:
    """The error lists the fields that were sent, escaped and cut."""
    body = {"\n" + "a" * 100: 1} | {f"field_{at}": at for at in range(20)}

    error = server.post("/v1/score", body).json()["error"]

    first = "'\\n" + "a" * 39 + "', 'field_0', "
    assert error.startswith(f"items is missing; fields sent: {first}")
    assert error.endswith(" and 11 more")


def test_long_body(guarded: RewardServer) -> None:
    """A body over MAX_BODY_BYTES is 413, with a length or without; one at the limit is read."""
    key = {"X-API-Key": "first-key-of-tests"}
    empty = json.dumps({"items": []}).encode()
    fits, too_long = empty.ljust(100_000), empty.ljust(100_001)

    assert guarded.post("/v1/score", data=fits, headers=JSON | key).status_code == 200
    assert guarded.post("/v1/score", data=iter([fits]), headers=JSON | key).status_code == 200
    assert refusal(guarded.post("/v1/score", data=too_long, headers=JSON | key)) == (413, "body")
    assert refusal(guarded.post("/v1/score", data=iter([too_long]), headers=JSON | key)) == (413, "body")
    assert refusal(guarded.post("/v1/score", data=b"x" * 50_000_000, headers=JSON | key)) == (413, "body")


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer first-key-of-tests"},
        {"Authorization": "bearer second-key-of-tests"},
        {"X-API-Key": "second-key-of-tests"},
        {"XRL-Authorization": "Bearer first-key-of-tests"},
    ],
)
def test_key(guarded: RewardServer, headers: dict[str, str]) -> None:
    """Each key opens every endpoint, in any of the headers."""
    assert guarded.score(ITEM, headers=headers)[0]["value"] == 1.0


def test_key_in_the_address(guarded: RewardServer) -> None:
    """A trainer that can set no header has the key in its URL."""
    address = guarded.url.replace("http://", "http://any:second-key-of-tests@") + "/v1/score"

    assert requests.post(address, json={"items": [ITEM]}, timeout=60).status_code == 200


NO_KEYS: list[dict[str, str]] = [
    {},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Basic first-key-of-tests"},
    {"XRL-Authorization": "first-key-of-tests"},
    {"Authorization": "first-key-of-tests"},
    {"X-API-Key": ""},
]
WRONG_KEYS: list[dict[str, str]] = [
    {"Authorization": "Bearer wrong"},
    {"Authorization": f"Basic {b64encode(b'first-key-of-tests:wrong').decode()}"},
    {"X-API-Key": "first-key-of-tests,second-key-of-tests"},
    {"X-API-Key": "first-ke\u00ff"},
    {"X-API-Key": "first-key-of-tests\u00e9"},
]
GUARDED_PATHS = ["/v1/score", "/roll/result", "/openapi.json", "/metrics", "/nothing"]


def test_no_key(guarded: RewardServer, table: Table) -> None:
    """Without a key nothing but /health and /ready answers, and what is there is not told; a wrong key is called so."""
    for path, headers in product(GUARDED_PATHS, NO_KEYS + WRONG_KEYS):
        with table.case(f"{path} {headers}"):
            encoded = {name: value.encode("latin-1") for name, value in headers.items()}

            reply = guarded.get(path, headers=encoded)

            assert refusal(reply) == (401, "Authorization")
            assert ("the API key is not accepted" in reply.json()["error"]) == (headers in WRONG_KEYS)
            assert ("an API key is needed" in reply.json()["error"]) == (headers not in WRONG_KEYS)
            assert reply.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_open_without_key(guarded: RewardServer, path: str) -> None:
    """Probes need no key."""
    assert guarded.get(path).status_code == 200


def test_tenants(guarded: RewardServer) -> None:
    """Who has one key does not see what was scored for another."""
    item = ITEM | {"solution_str": "#### 1 of two tenants"}
    for _ in range(8):
        guarded.score(item, headers={"X-API-Key": "first-key-of-tests"})

    assert guarded.score(item, headers={"X-API-Key": "first-key-of-tests"})[0]["cached"] is True
    assert guarded.score(item, headers={"X-API-Key": "second-key-of-tests"})[0]["cached"] is False


def test_log_holds_no_secrets(guarded: RewardServer) -> None:
    """Neither a key nor a candidate's text is written to the log, not even when it is refused."""
    guarded.score(ITEM | {"solution_str": "a candidate's own words"}, headers={"X-API-Key": "first-key-of-tests"})
    guarded.post("/v1/score", {"items": ["another candidate's words"]}, headers={"X-API-Key": "second-key-of-tests"})
    guarded.get("/metrics", headers={"X-API-Key": "a wrong key"})

    log = guarded.log.read_text()

    assert [
        word for word in ("first-key-of-tests", "second-key-of-tests", "wrong key", "candidate") if word in log
    ] == []
