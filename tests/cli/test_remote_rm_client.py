"""`RemoteRewardModel`: Align-Anything's client, tried against a server that answers from a script."""

from __future__ import annotations

import inspect
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rewardstack import client
from rewardstack.errors import (
    FailureRateError,
    RejectedError,
    ReplyError,
    RequestError,
    ServiceError,
    SettingsError,
    UnreachableError,
)
from rewardstack.remote_rm_client import RemoteRewardModel
from rewardstack.settings import DEFAULTS
from rewardstack.transport import timing
from rewardstack.transport.attempt import Attempt
from tests.support.clock import Clock
from tests.support.waiting import eventually

from .scripted_server import Answer, scripted_server

TWO = Answer({"rewards": [1.5, 0], "statuses": ["ok", "ok"]})


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads the caller's settings, and no pause after an ill reply is long."""
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)


def model(url: str, **options: Any) -> RemoteRewardModel:
    return RemoteRewardModel(f"{url}/get_reward", **options)


def test_signatures_are_the_originals() -> None:
    """Calls of Align-Anything's client, by position or by keyword, work with this one."""
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
        model(server.url, timeout=70_000).score(["p", "q"], ["a", "b"])
    assert 69_000_000 < int(server.asked[0]["headers"]["X-Request-Deadline-Ms"]) <= 70_000_000


def test_an_empty_batch_asks_nobody() -> None:
    """No samples, no rewards, no request."""
    assert model("http://127.0.0.1:1").score([], []) == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_transient_errors_are_retried(status: int) -> None:
    """Overload and server errors do not cost the batch; the table of replies is the transport's own."""
    with scripted_server(Answer({"error": "later"}, status), TWO) as server:
        assert model(server.url).score(["p", "q"], ["a", "b"]) == [1.5, 0.0]
    assert [one["path"] for one in server.asked].count("/get_reward") == 2


def test_a_lost_connection_is_tried_again() -> None:
    """A connection that the server closes without an answer costs a try and not the batch."""
    with scripted_server(Answer(cut=True), TWO) as server:
        assert model(server.url).score(["p", "q"], ["a", "b"]) == [1.5, 0.0]


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_refusal_is_an_error(status: int) -> None:
    """A 4xx is an error with its status and the server's words."""
    refused = Answer({"error": "prompts is missing"}, status)
    with scripted_server(refused) as server, pytest.raises(RejectedError, match="prompts is missing") as caught:
        model(server.url).score(["p"], ["a"])
    assert caught.value.status == status


@pytest.mark.parametrize("status", [500, 503])
def test_the_last_obstacle_is_reported(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """A server that keeps refusing is an error that names its answer."""
    clock = Clock(monkeypatch)
    with scripted_server(Answer({"error": "no"}, status)) as server, ThreadPoolExecutor(1) as thread:
        scoring = thread.submit(model(server.url).score, ["p"], ["a"])
        eventually(lambda: scoring.done() or len(server.asked) > 2)
        clock.forward(0 if scoring.done() else 301)
        with pytest.raises(ServiceError, match=f"{status}: no"):
            scoring.result()


def test_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is an error that names the endpoint and the cause, not a reward."""
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "0.2")  # expires
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ServiceError, match=rf"127\.0\.0\.1:{port}/get_reward: connection refused"):
        model(f"http://127.0.0.1:{port}").score(["p"], ["a"])


def test_a_server_that_hangs() -> None:
    """A batch that is never answered fails after `timeout`."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ServiceError, match="no answer|sent nothing"):
        model(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2).score(["p"], ["a"])  # expires


def test_an_outage_costs_one_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a server has not answered a batch, the next ones of any caller are told so at once."""
    monkeypatch.setattr(timing, "PROBE_AFTER", 0.2)
    monkeypatch.setattr(timing, "HEALTH_TIMEOUT", 0.3)  # expires
    hung: list[str] = []
    interrupt = Attempt.interrupt

    def note(attempt: Attempt, error: ServiceError) -> None:
        hung.append(str(error))
        interrupt(attempt, error)

    monkeypatch.setattr(Attempt, "interrupt", note)
    clock = Clock(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as thread:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        scoring = thread.submit(model(url).score, ["p"], ["a"])
        eventually(lambda: "not even GET /health" in str(hung))
        clock.forward(101)
        with pytest.raises(ServiceError):
            scoring.result()
        for _ in range(10):
            with pytest.raises(UnreachableError, match="failing fast"):
                model(url).score(["p"], ["a"])


def test_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of several clients go through one connection."""
    monkeypatch.setattr(timing, "KEEPALIVE", 3600.0)
    monkeypatch.setattr(client, "_clients", {})
    with scripted_server(TWO) as server:
        for _ in range(5):
            assert model(server.url).score(["p", "q"], ["a", "b"]) == [1.5, 0.0]
    assert server.connections == 1


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


def test_samples_without_a_score(caplog: pytest.LogCaptureFixture) -> None:
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
        (None, ["a"], None, "prompts"),
        (["p"], None, None, "responses"),
        (["p"], ["a"], 7, "golden_responses"),
    ],
)
def test_malformed_batches_are_refused_before_sending(prompts: Any, responses: Any, golden: Any, field: str) -> None:
    """Lists of unequal length, or of something else than strings, are an error that names the list."""
    with pytest.raises(RequestError, match=field) as caught:
        model("http://127.0.0.1:1").score(prompts, responses, golden)
    assert caught.value.field == field


@pytest.mark.parametrize("endpoint", ["", "localhost:6000", "ftp://a/get_reward", "http://a:6000,http://b:6000"])
def test_malformed_endpoints_are_refused(endpoint: str) -> None:
    """What is not one http or https URL is an error at once."""
    with pytest.raises((SettingsError, RequestError), match="endpoint"):
        RemoteRewardModel(endpoint)


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"retry_times": 0}, {"timeout": "5"}, {"timeout": None}, {"endpoint": 6000}]
)
def test_malformed_options_are_refused(options: dict[str, Any]) -> None:
    """A timeout or a number of tries that is not above 0, or a value of the wrong type, is an error that names it."""
    name, value = next(iter(options.items()))
    with pytest.raises(RequestError, match=f"^{name}: expected a .*, got {value!r}$"):
        RemoteRewardModel(**{"endpoint": "http://127.0.0.1:1", **options})


@pytest.mark.parametrize(
    "answer", [Answer({"error": "there is no endpoint '/x'; available: /", "field": "path"}, 404), Answer({}, 405)]
)
def test_a_wrong_path_has_a_remedy(answer: Answer) -> None:
    """An endpoint that is not the server's /get_reward is an error with the right URL."""
    with scripted_server(answer) as server, pytest.raises(RejectedError) as caught:
        RemoteRewardModel(f"{server.url}/x").score(["p"], ["a"])
    assert str(caught.value).endswith(f"; set endpoint to {server.url}/get_reward")


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


def test_failed_samples_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that the server reports as failed count for REWARDSTACK_MAX_FAILURE_RATE."""
    monkeypatch.setenv("REWARDSTACK_MAX_FAILURE_RATE", "0.25")
    monkeypatch.setenv("REWARDSTACK_FAILURE_WINDOW", "4")
    reply = Answer({"rewards": [0.0, 0.0], "statuses": ["failed", "failed"]})
    with scripted_server(TWO, reply) as server:
        asked = model(server.url)
        assert asked.score(["p", "q"], ["a", "b"]) == [1.5, 0.0]
        with pytest.raises(FailureRateError, match=r"^2 of the last 4 samples failed.*/get_reward reports"):
            asked.score(["p", "q"], ["a", "b"])
