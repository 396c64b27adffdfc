"""Reward models of TEI, OpenRLHF and SGLang, which read one text, against servers written from their sources."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, client, register_reward_model, score
from rewardstack.errors import ConfigError
from rewardstack.settings import DEFAULTS
from tests.client.check_command import check
from tests.support.servers import FaultServer
from tests.support.table import Table

FAKE = Path(__file__).with_name("fake_text_apis.py")
APIS = ("tei", "openrlhf", "sglang")
TEMPLATE = "Q: {PROBLEM} A: {CANDIDATE_SOLUTION}"


@pytest.fixture(scope="module")
def one_server(needs_process: None) -> Iterator[FaultServer]:
    """The server of this file's tests."""
    server = FaultServer(script=FAKE)
    yield server
    server.kill()


@pytest.fixture
def server(one_server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    """The server, with a route for each of its APIs."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_registered", {})
    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setenv("JUDGE_REVISION", uuid.uuid4().hex)
    for api in APIS:
        register(api, one_server)
    one_server.set()
    return one_server


def register(api: str, server: FaultServer, name: str = "", **fields: Any) -> None:
    """A route for an API, by its name unless another one is given."""
    table = {"base_url": server.url, "api": api, "template": TEMPLATE, "floor": -100, "model": "rm", **fields}
    register_reward_model(name or api, table)


def scored(source: str, response: str = "It is 42.", problem: str = "6 * 7?") -> Score:
    """The score of a sample; one without a value instead of an error."""
    [one] = score([Request(source, response, None, {"problem": problem})], on_error="none")
    return one


def test_raw_output(server: FaultServer, table: Table) -> None:
    """The value is the raw output for the rendered template; it is cached under the model's name."""
    for api in APIS:
        with table.case(api):
            one = scored(api)
            assert (one.value, one.status, one.cached) == (-8.0, "ok", False), one.reason
            assert scored(api).cached
    texts = [body.get("inputs") or body.get("query") or body.get("input") for body in server.stats()["bodies"]]
    rendered = "Q: 6 * 7? A: It is 42."
    assert texts == [[[rendered]], [rendered], rendered]


def test_placeholders_in_a_response(server: FaultServer) -> None:
    """A response cannot have the problem, or itself, put in once more, and its control tokens are text."""
    scored("sglang", "{PROBLEM} {CANDIDATE_SOLUTION} <|im_end|>")
    [body] = server.stats()["bodies"]
    assert body["input"].startswith("Q: 6 * 7? A: {PROBLEM} {CANDIDATE_SOLUTION} ")
    assert "<|im_end|>" not in body["input"]


def test_too_long(server: FaultServer, table: Table) -> None:
    """A response beyond the model's context has the floor, where the server says so."""
    for api in ("tei", "sglang"):
        with table.case(api):
            one = scored(api, "word " * 60)
            assert (one.value, one.status) == (-100.0, "ok"), one.reason
            assert "longer than the reward model's context" in one.reason


def test_several_outputs(server: FaultServer) -> None:
    """TEI sorts classes by score; weights go by the number in each label, and names without one are an error."""
    register("tei", server, "two", outputs=[10, 1])
    server.set(labels=["LABEL_0", "LABEL_1"])
    assert scored("two").value == 10 * -8.0 - 16.0
    with pytest.raises(ConfigError, match="the model has 2 outputs, but no weights are set"):
        scored("tei", "another")
    server.set(labels=["good", "bad"])
    assert scored("two", "a third").status == "failed"


def test_failures(server: FaultServer) -> None:
    """An overloaded server and another kind of server are failed samples, never a value."""
    register("tei", server, "brief", model="other")
    server.set(status=424)
    assert scored("brief").status == "failed"
    register("openrlhf", server, "misrouted", base_url=f"{server.url}/below")
    one = scored("misrouted")
    assert one.status == "failed" and "check that api = openrlhf fits the server" in one.reason


def test_uncached_without_a_name(server: FaultServer) -> None:
    """Without `model` nothing says which weights gave a score, so it is not cached."""
    register_reward_model("nameless", {"base_url": server.url, "api": "tei", "template": TEMPLATE, "floor": -100})
    assert [scored("nameless").cached for _ in range(2)] == [False, False]


def test_check(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rewardstack check` tries each API, and says what does not fit."""
    routes = tmp_path / "routes.toml"
    table = '[reward_models.{0}]\nbase_url = "{1}"\napi = "{0}"\ntemplate = "{{CANDIDATE_SOLUTION}}"\nfloor = -9\n'
    routes.write_text("".join(table.format(api, server.url) for api in APIS))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
    _, told = check()
    assert told.count("[-1.0]") == len(APIS), told
