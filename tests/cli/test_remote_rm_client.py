"""`RemoteRewardModel`: Align-Anything's client, tried against a server that answers from a script."""

from __future__ import annotations

import inspect
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from urllib3.exceptions import ProtocolError

from rewardstack import remote_rm_client
from rewardstack.errors import (
    OverloadError,
    RejectedError,
    ReplyError,
    RequestError,
    ServiceError,
    SettingsError,
    UnreachableError,
)
from rewardstack.remote_rm_client import RemoteRewardModel

from .scripted_server import Answer, scripted_server

TWO = Answer({"rewards": [1.5, 0], "statuses": ["ok", "ok"]})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for seconds, and none reads the caller's settings."""
    monkeypatch.setattr(remote_rm_client, "FIRST_PAUSE", 0.01)
    for name in ("REWARD_SERVER_URL", "REWARD_SERVER_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def model(url: str, **options: Any) -> RemoteRewardModel:
    return RemoteRewardModel(f"{url}/get_reward", **options)


def test_signatures_are_the_originals() -> None:
    """Whoever calls Align-Anything's client, by position or by keyword, can call this one."""
    parameters = inspect.signature(RemoteRewardModel).parameters
    assert [(name, parameters[name].default) for name in list(parameters)[:3]] == [
        ("endpoint", inspect.Parameter.empty),
        ("timeout", 100),
        ("retry_times", 3),
    ]
    assert list(inspect.signature(RemoteRewardModel.score).parameters)[1:3] == ["prompts", "responses"]


def test_rewards_come_as_a_list_in_order() -> None:
    """The reply's rewards are returned as floats."""
    with scripted_server(TWO) as server:
        assert model(server.url).score(["p", "q"], ["a", "b"]) == [1.5, 0.0]
    assert server.asked[0]["path"] == "/get_reward"
    assert server.asked[0]["body"] == {"prompts": ["p", "q"], "responses": ["a", "b"]}


def test_golden_responses_are_sent_where_given() -> None:
    """The third list goes into the body under its name."""
    with scripted_server(TWO) as server:
        model(server.url).score(["p", "q"], ["a", "b"], ["1", "2"])
    assert server.asked[0]["body"]["golden_responses"] == ["1", "2"]


def test_deadline_travels() -> None:
    """The server is told how long this client waits."""
    with scripted_server(TWO) as server:
        model(server.url, timeout=7).score(["p", "q"], ["a", "b"])
    assert server.asked[0]["headers"]["X-Request-Deadline-Ms"] == "7000"


def test_an_empty_batch_asks_nobody() -> None:
    """No samples, no rewards, no request."""
    assert model("http://127.0.0.1:1").score([], []) == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_passing_troubles_are_tried_again(status: int) -> None:
    """408, 429 and 5xx cost a try and not the batch."""
    with scripted_server(Answer({"error": "later"}, status), TWO) as server:
        assert model(server.url).score(["p", "q"], ["a", "b"]) == [1.5, 0.0]
    assert len(server.asked) == 2


def test_a_lost_connection_is_tried_again() -> None:
    """A connection that the server closes without an answer costs a try and not the batch."""
    with scripted_server(Answer(cut=True), TWO) as server:
        assert model(server.url).score(["p", "q"], ["a", "b"]) == [1.5, 0.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 415, 422])
def test_what_is_refused_for_good_is_asked_once(status: int) -> None:
    """No other 4xx is tried again; its status and the server's words are in the error."""
    refused = Answer({"error": "prompts is missing"}, status)
    with scripted_server(refused) as server, pytest.raises(RejectedError, match="prompts is missing") as caught:
        model(server.url).score(["p"], ["a"])
    assert (caught.value.status, len(server.asked)) == (status, 1)


@pytest.mark.parametrize(
    ("status", "kind"), [(408, OverloadError), (429, OverloadError), (503, OverloadError), (500, ReplyError)]
)
def test_tries_are_counted(status: int, kind: type[ServiceError]) -> None:
    """`retry_times` is the number of requests, after which the last refusal is raised."""
    with scripted_server(Answer({"error": "no"}, status)) as server, pytest.raises(kind, match=f"{status}: no"):
        model(server.url, retry_times=3).score(["p"], ["a"])
    assert len(server.asked) == 3


def test_retry_after_is_heeded_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own pause is kept, but not one of an hour."""
    slept: list[float] = []
    own = SimpleNamespace(sleep=slept.append, time=time.time)  # others sleep meanwhile, in other threads
    monkeypatch.setattr("urllib3.util.retry.time", own)
    refusals = [Answer({}, 503, {"Retry-After": pause}) for pause in ("7", "3600")]
    with scripted_server(*refusals, TWO) as server:
        model(server.url).score(["p", "q"], ["a", "b"])
    assert slept == [7, remote_rm_client.LONGEST_PAUSE]


def test_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause is twice the one before."""
    pauses = []
    tries = remote_rm_client._Tries.of(4)
    for _ in range(3):
        tries = tries.increment("POST", "/get_reward", error=ProtocolError())
        pauses.append(tries.get_backoff_time())
    assert pauses == [0.01, 0.02, 0.04]


def test_nobody_there_is_unreachable() -> None:
    """A refused connection is an error that names the endpoint and the cause, not a reward."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(UnreachableError, match=rf"127\.0\.0\.1:{port}/get_reward: .* 2 tries: Connection refused"):
        model(f"http://127.0.0.1:{port}", retry_times=2).score(["p"], ["a"])


def test_a_server_that_hangs_is_unreachable() -> None:
    """A server that accepts and stays silent is given up after `timeout` a try."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(UnreachableError, match="timed out"):
        model(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1, retry_times=2).score(["p"], ["a"])


@pytest.mark.parametrize(
    "body",
    [b"<html>", None, [1.0], {}, {"rewards": 1.0}, {"rewards": []}, {"rewards": [1.0, 2.0]}, {"rewards": [None]},
     {"rewards": ["1"]}, {"rewards": [True]}, b'{"rewards": [NaN]}', b'{"rewards": [1e999]}'],
)  # fmt: skip
def test_a_reply_that_is_no_reward_is_an_error(body: Any) -> None:
    """What is not exactly one finite number a sample never becomes a reward."""
    with scripted_server(Answer(body)) as server, pytest.raises(ReplyError):
        model(server.url).score(["p"], ["a"])


def test_a_redirect_is_refused() -> None:
    """A POST that is redirected would lose its body: the address is to be corrected."""
    moved = Answer({}, 302, {"Location": "http://127.0.0.1:1/"})
    with scripted_server(moved) as server, pytest.raises(RejectedError, match="302"):
        model(server.url).score(["p"], ["a"])


def test_samples_without_a_score_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """A 0.0 that stands for a failure is counted in a warning and named in `statuses`."""
    reply = Answer({"rewards": [1.0, 0.0, 0.0], "statuses": ["ok", "failed", "unscored"]})
    with scripted_server(reply) as server:
        asked = model(server.url)
        assert asked.score(["p"] * 3, ["a"] * 3) == [1.0, 0.0, 0.0]
    assert asked.statuses == ["ok", "failed", "unscored"]
    assert "2 of 3 samples have no score (failed: 1, unscored: 1)" in caplog.text


@pytest.mark.parametrize(
    ("prompts", "responses", "golden", "field"),
    [
        (["p"], ["a", "b"], None, "responses"),
        (["p"], ["a"], [], "golden_responses"),
        (["p"], [None], None, "responses"),
        ("p", "a", None, "prompts"),
    ],
)
def test_malformed_batches_are_refused_at_once(prompts: Any, responses: Any, golden: Any, field: str) -> None:
    """Lists of unequal length, or of something else than strings, are an error that names the list."""
    with pytest.raises(RequestError, match=field) as caught:
        model("http://127.0.0.1:1").score(prompts, responses, golden)
    assert caught.value.field == field


@pytest.mark.parametrize("endpoint", ["", "localhost:6000", "ftp://a/get_reward", "http://a:6000,http://b:6000"])
def test_malformed_endpoints_are_refused(endpoint: str) -> None:
    """What is not one http or https URL is an error at once."""
    with pytest.raises((SettingsError, RequestError), match="endpoint"):
        RemoteRewardModel(endpoint)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"retry_times": 0}])
def test_malformed_options_are_refused(options: dict[str, Any]) -> None:
    """A timeout or a number of tries that is not above 0 is an error that names it."""
    with pytest.raises(RequestError, match=next(iter(options))):
        RemoteRewardModel("http://127.0.0.1:1", **options)


def test_the_environments_key_goes_to_its_own_server_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`REWARD_SERVER_API_KEY` is sent to the servers of `REWARD_SERVER_URL`, and to no other; no .netrc replaces it."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("REWARD_SERVER_API_KEY", "secret")
    with scripted_server(TWO) as own, scripted_server(TWO) as other:
        monkeypatch.setenv("REWARD_SERVER_URL", own.url)
        for server in (own, other):
            model(server.url).score(["p", "q"], ["a", "b"])
        model(other.url, api_key="another").score(["p", "q"], ["a", "b"])
    keys = [asked["headers"].get("Authorization") for asked in (*own.asked, *other.asked)]
    assert keys == ["Bearer secret", None, "Bearer another"]
