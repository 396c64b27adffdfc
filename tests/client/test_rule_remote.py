"""`rule_remote.py`: one reward function as a file that a trainer loads by path, and its way to the reward server."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import rewardstack.rule_remote
from rewardstack import Request, compute_score, score
from rewardstack.cache.store import ResultCache
from rewardstack.errors import RequestError, SettingsError, UnknownSourceError
from rewardstack.routing.routes import RouteTable
from rewardstack.score import Item
from rewardstack.scorers.factory import Backends
from rewardstack.settings import Settings
from tests.cli.scripted_server import Answer, scripted_server
from tests.support.scoring import context
from tests.support.servers import FaultServer, fault_server, free_port


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A copy of the file in another directory, loaded by its path alone, as verl does."""
    path = tmp_path / "my_rewards.py"
    path.write_text(Path(rewardstack.rule_remote.__file__).read_text())
    spec = importlib.util.spec_from_file_location("custom_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_data_source_is_ignored(server: FaultServer, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Being one service, it scores whatever the `data_source` says, or where there is none."""
    monkeypatch.setenv("REWARD_TYPE", "math")
    assert 3.0 == module.compute_score("no/route", "abc", "1", None)
    assert 4.0 == module.compute_score(solution_str="abcd", ground_truth="1")
    assert [1.0, 2.0] == module.compute_score_batched(["no", "route"], ["a", "bb"], ["1", "1"], [{}, None])
    assert [1.0, 2.0] == module.compute_score(data_sources=["no", "route"], solution_strs=["a", "bb"])


def test_reward_type(
    server: FaultServer, module: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reward function is `reward_type`, else REWARD_TYPE, else, with a warning, `math_verifier`."""
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")
    assert "gsm8k" == _source(module, "by environment")
    assert "exact_match" == _source(module, "by argument", reward_type="exact_match")
    monkeypatch.delenv("REWARD_TYPE")
    with pytest.raises(UnknownSourceError, match="has no 'math_verifier'; it has: exact_match, gsm8k, math$"):
        module.compute_score("x", "a", "1")
    assert ["REWARD_TYPE is not set"] == [one.message[:22] for one in caplog.records if "REWARD_TYPE" in one.message]


def _source(module: Any, solution: str, **options: Any) -> str:
    """The function that scored, found by asking each for the same sample from the cache."""
    module.compute_score("x", solution, "1", **options)
    requests = [Request(f"rule_remote_{name}", solution, "1") for name in ("exact_match", "gsm8k", "math")]
    (name,) = {one.source.removeprefix("rule:") for one in score(requests) if one.cached}
    return name


def test_options_pass_through(server: FaultServer, module: Any) -> None:
    """What `compute_score` takes by name, this one does as well."""
    details = module.compute_score("x", "abc", "1", reward_type="math", details=True, reward_router_address=None)
    assert (3.0, 1.0) == (details["score"], details["ok"])
    with pytest.raises(RequestError, match="^ground_truths: expected 2 values, one per solution, got 1"):
        module.compute_score_batched([], ["a", "b"], ["1"], reward_type="math")


def test_no_server(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server to ask, the error says which variable to set and how to come by a server."""
    monkeypatch.setitem(sys.modules, "rewardstack_rules", None)
    monkeypatch.setattr("rewardstack.client._clients", {})  # an earlier test's has found the rules
    with pytest.raises(SettingsError, match="^REWARD_SERVER_URL is not set; .*make up") as caught:
        module.compute_score("x", "a", "1")
    assert "REWARD_SERVER_URL" == caught.value.field


def test_server_of_the_sample(server: FaultServer) -> None:
    """`extra_info.server_url` sends that sample to another server, in one batch with the others."""
    with fault_server() as other:
        samples = [Request("math", "here", "1"), Request("math", "there", "1", {"server_url": other.url + "/"})]
        assert ["ok", "ok"] == [one.status for one in score(samples)]
        assert (1, 1) == (server.stats()["items"], other.stats()["items"])


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"server_url": 6000}, "extra_info.server_url"),
        ({"server_url": "localhost:6000"}, "extra_info.server_url"),
        ({"server_url": "http://user:hunter2@localhost:6000"}, "extra_info.server_url"),
        ({"api_key": 7}, "extra_info.api_key"),
    ],
    ids=repr,
)
def test_malformed_server_of_the_sample(server: FaultServer, extra: dict[str, Any], field: str) -> None:
    """A server or key that cannot be one is its sample's fault, by name, and no password is repeated."""
    wrong, right = score([Request("math", "malformed", "1", extra), Request("math", "malformed", "1")])
    assert ("unscored", field, "ok") == (wrong.status, wrong.field, right.status)
    assert wrong.reason.startswith(field) and "hunter2" not in wrong.reason


def test_environments_key_stays_at_home(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's API key goes to the environment's servers, and not to one that a sample names."""
    monkeypatch.setenv("REWARD_SERVER_API_KEY", "secret")
    with fault_server() as other:
        score([Request("math", "at home", "1"), Request("math", "abroad", "1", {"server_url": other.url})])
        assert (1, 0) == (server.stats()["authorized"], other.stats()["authorized"])
        score([Request("math", "own key", "1", {"server_url": other.url, "api_key": "own"})])
        assert 1 == other.stats()["authorized"]
        score([Request("math", "home by name", "1", {"server_url": server.url})])
        assert 2 == server.stats()["authorized"]


@pytest.mark.parametrize(
    ("fields", "extra", "ended"),
    [
        (["*"], {"image_url": "http://images", "note": "n", 1: "a name that is no text"}, ("ok", "")),
        (["image_url"], {"image_url": "http://images"}, ("unscored", "extra_info.image_url")),
        (["*"], {"image": b"png"}, ("unscored", "extra_info.image")),
        (["image"], {"image": [{1, 2}]}, ("unscored", "extra_info.image")),
    ],
    ids=repr,
)
def test_what_cannot_be_sent(
    server: FaultServer, fields: list[str], extra: dict[Any, Any], ended: tuple[str, str]
) -> None:
    """A field that cannot be sent costs its own sample the score, by name, and its neighbours nothing."""
    server.set(fields=fields)
    samples = [Request("math", f"beside {[*extra]} {number}", "1", extra if number == 1 else {}) for number in range(3)]

    first, other, last = score(samples)

    assert (("ok", ended, "ok")) == (first.status, (other.status, other.field), last.status)
    assert other.reason.startswith(other.field)


@pytest.mark.parametrize("remembered", [100, 0])
def test_what_leaves_the_trainer(server: FaultServer, monkeypatch: pytest.MonkeyPatch, remembered: int) -> None:
    """Of `extra_info` only what the function reads is sent, with a cache or without: JSON may not hold the rest."""
    monkeypatch.setenv("REWARD_CACHE_ITEMS", str(remembered))
    server.set(fields=["tolerance"])
    extra = {"tolerance": 1, "model": object(), "server_url": server.url, "api_key": "secret"}
    assert "ok" == score([Request("math", "with an object", "1", extra)])[0].status


def test_function_that_the_server_does_not_have(server: FaultServer) -> None:
    """The server is asked once for a function that it does not have, and again if its list of functions is old."""
    with pytest.raises(UnknownSourceError, match="has no 'later'"):
        score([Request("rule_remote_later", "a", "1")])
    assert 1 == server.stats()["types"]

    server.set(names=["later"])

    assert "ok" == score([Request("rule_remote_later", "a", "1")])[0].status
    assert 2 == server.stats()["types"]


async def test_what_leaves_the_trainer_without_a_key(server: FaultServer) -> None:
    """A sample that was not asked for its key is asked before it is sent: no field leaves that the function has not."""
    server.set(fields=["tolerance"])
    settings = Settings.from_env()
    backends = Backends()
    try:
        rule = backends.scorers(settings, ResultCache(settings), "", RouteTable())["rule"]("math")
        sample = rule.prepare(Item("a", ("1",), {"tolerance": 1, "name": object()}))
        assert "ok" == (await rule.score([sample], context(30)))[0].status
    finally:
        await backends.close()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("400", "returned 400: mode 400"),
        ("413", "returned 413: mode 413"),
        ("500", "returned 500: mode 500"),
        ("garbage", "returned 200 with a page instead of JSON: a proxy or another service"),
        ("short", "got 1 scores for 2 samples"),
        ("nan", "the value is nan, not a finite number"),
    ],
)
def test_reply_that_is_no_score(server: FaultServer, mode: str, reason: str) -> None:
    """Whatever is no score of a sample makes it `failed` with a reason, and is not kept."""
    server.set(mode=mode)
    requests = [Request("math", f"{mode} once", "1"), Request("math", f"{mode} twice", "1")]
    first = score(requests)[0]
    assert (0.0, "failed") == (first.value, first.status)
    assert reason in first.reason
    server.set(mode="ok")
    (again,) = score(requests[:1])
    assert ("ok", False) == (again.status, again.cached)


def test_refused_key(server: FaultServer) -> None:
    """A key that is refused follows the policy; the reason says whose it was, also of a sample's own."""
    server.set(mode="401")
    environments, own = score([Request("math", "a", "1"), Request("math", "b", "1", {"api_key": "mine"})])
    assert [("failed", 0.0)] * 2 == [(one.status, one.value) for one in (environments, own)]
    assert "no key was sent; set REWARD_SERVER_API_KEY" in environments.reason and server.url in environments.reason
    assert "extra_info.api_key; correct it" in own.reason and "mine" not in own.reason


def test_function_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is not there when it is to score is raised, for no retry helps."""
    refusal = {"error": "there is no reward function 'math'", "field": "data_source"}
    with scripted_server(Answer(refusal, 404)) as server:
        monkeypatch.setenv("REWARD_SERVER_URL", server.url)
        with pytest.raises(UnknownSourceError, match="there is no reward function 'math'") as caught:
            compute_score("rule_remote_math", "refused with 404", "1")
    assert "data_source" == caught.value.field


def test_server_that_is_down_costs_only_its_samples(server: FaultServer) -> None:
    """A sample that names a server that is down fails; the other samples of the call are scored."""
    gone = {"server_url": f"http://127.0.0.1:{free_port()}", "timeout": 0.5}  # expires
    extras = [gone if index == 3 else {} for index in range(8)]
    scores = score([Request("math", f"sample {index}", "1", extra) for index, extra in enumerate(extras)])
    assert ["failed" if extra else "ok" for extra in extras] == [one.status for one in scores]


def test_404_of_another_service(server: FaultServer) -> None:
    """A 404 that no reward server sends leaves the sample `failed`, and names the setting to correct."""
    server.set(mode="404")
    (score_,) = score([Request("math", "refused with 404", "1")])
    assert score_.status == "failed"
    assert score_.reason == (
        f"{server.url}/v1/score returned 404: mode 404; "
        "another service answers there; correct host and port in REWARD_SERVER_URL"
    )


@pytest.mark.parametrize(("variable", "extra"), [("REWARD_SERVER_URL", None), ("extra_info.server_url", {})])
def test_path_under_which_nothing_answers(
    monkeypatch: pytest.MonkeyPatch, variable: str, extra: dict[str, Any] | None
) -> None:
    """A URL with a wrong path is an error that names the path and the setting once, without the server's endpoints."""
    refusal = {"error": "there is no endpoint '/foo/v1/score'; available: /, /v1/score", "field": "path"}
    with scripted_server(Answer(refusal, 404)) as server:
        url = f"{server.url}/foo"
        monkeypatch.setenv("REWARD_SERVER_URL", url if extra is None else server.url)
        with pytest.raises(SettingsError) as caught:
            compute_score("math", "a", "1", None if extra is None else {"server_url": url})
    assert str(caught.value) == (
        f"{url}/v1/score returned 404: there is no endpoint '/foo/v1/score'; no service answers under the path /foo; "
        f"remove it from {variable}, unless a gateway uses it as a prefix"
    )


def test_unknown_function(server: FaultServer) -> None:
    """A function that the server does not have is an error that lists those it has."""
    with pytest.raises(UnknownSourceError, match="has no 'nope'; it has: exact_match, gsm8k, math$"):
        compute_score("rule_remote_nope", "a", "1")
