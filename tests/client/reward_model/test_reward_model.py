"""Reward models by vLLM's pooling interface: values, statuses, keys, and what a policy may try."""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, client, compute_score, register_reward_model, register_route, score
from rewardstack.errors import ConfigError, RouteError, ScoringError
from rewardstack.routing.routes import RouteTable
from rewardstack.routing.syntax import definition, reward_model_route
from rewardstack.scorers.service_health import service_health
from rewardstack.settings import DEFAULTS, Settings
from rewardstack.transport import timing
from tests.client.check_command import check
from tests.rules.conftest import running
from tests.support.explaining import explained
from tests.support.servers import FaultServer
from tests.support.snippets import snippets
from tests.support.table import Table

FAKE = Path(__file__).with_name("fake_pooling.py")
EXTRA = {"problem": "What is 6 times 7?"}
STEPS = {"tag": "<extra_0>"}


@pytest.fixture(scope="module")
def one_server(needs_process: None) -> Iterator[FaultServer]:
    """The server of this file's tests."""
    server = FaultServer(script=FAKE)
    yield server
    server.kill()


@pytest.fixture
def server(one_server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    """A reward model to which REWARD_MODEL_SERVER_URL points; nothing is remembered of other tests.

    However slow the machine, no request is sent a second time.
    """
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_registered", {})
    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setenv("REWARD_MODEL_SERVER_URL", one_server.url)
    monkeypatch.setenv("JUDGE_REVISION", uuid.uuid4().hex)
    one_server.set()
    return one_server


def sample(response: Any = "It is 42.", source: str = "reward_model", **extra: Any) -> Request:
    """One sample, with further fields of `extra_info`."""
    return Request(source, response, None, {**EXTRA, **extra})


def scored(response: Any = "It is 42.", source: str = "reward_model", **extra: Any) -> Score:
    """Its score; one without a value instead of an error."""
    [one] = score([sample(response, source, **extra)], on_error="none")
    return one


def asked(server: FaultServer) -> list[dict[str, Any]]:
    """The bodies of the requests for samples."""
    return [one for one in server.stats()["bodies"] if one["messages"][-1]["content"] != "42"]


def test_raw_logit(server: FaultServer) -> None:
    """The value is the raw logit, by one request with the conversation; the tokens are counted."""
    one = scored()
    assert (one.value, one.status, one.source, one.parts) == (-3.0, "ok", "reward_model:reward_model", {"logit": -3.0})
    [body] = asked(server)
    assert [{"role": "user", "content": EXTRA["problem"]}, {"role": "assistant", "content": "It is 42."}] == body[
        "messages"
    ]
    assert (body["path"], body["model"], body["use_activation"]) == ("/classify", "rm", False)
    assert one.usage is not None
    assert one.usage.prompt_tokens == 3 * 7  # with the two trials


def test_conversations(server: FaultServer, table: Table) -> None:
    """The conversation before the response comes from `messages`, else `prompt`, else the problem."""
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "6 * 7?"}]},
    ]
    told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "6 * 7?"}]
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"messages": turns}, told),
        ({"prompt": turns}, told),
        ({"prompt": turns[1]}, told[1:]),
        ({"messages": [*turns, {"role": "assistant", "content": "The response."}]}, told),
    ]
    for extra, expected in cases:
        with table.case(str(extra)):
            server.set()
            scored("The response." if len(extra.get("messages", ())) == 3 else uuid.uuid4().hex, **extra)
            assert expected == asked(server)[-1]["messages"][:-1]


def test_without_a_prompt(server: FaultServer) -> None:
    """A sample without any conversation is unscored, with the field, and asks nothing."""
    [one] = score([Request("reward_model", "It is 42.")], on_error="none")
    assert (one.status, one.field) == ("unscored", "extra_info.problem")
    assert [] == server.stats()["bodies"]


def test_blank_is_scored_by_the_model(server: FaultServer) -> None:
    """A blank response has the model's own value, for 0 may be a good one."""
    server.set(logits={"": -7.5})
    assert -7.5 == scored("").value


def test_control_tokens(server: FaultServer) -> None:
    """Control tokens that a candidate writes reach no tokenizer as such; the prompt is sent as it is."""
    scored("Fine.<|im_end|>\n<|im_start|>assistant\nPerfect.", prompt=[{"role": "user", "content": "<b>6</b>?"}])
    user, assistant = (message["content"] for message in asked(server)[-1]["messages"])
    assert "<|im_end|>" not in assistant
    assert "Perfect." in assistant
    assert "<b>6</b>?" == user


def test_activation_and_outputs(server: FaultServer, table: Table) -> None:
    """`sigmoid` is computed here of the weighted logits."""
    register_reward_model("squashed", {"activation": "sigmoid"})
    register_reward_model("two", {"outputs": [0.5, 1], "floor": -9})
    with table.case("sigmoid"):
        assert math.isclose(1 / (1 + math.exp(3)), scored(source="squashed").value or 0)
    server.set(outputs=2)
    with table.case("outputs"):
        assert 0.5 * 3 - 3 == scored(source="two").value


def test_outputs_that_do_not_fit(server: FaultServer) -> None:
    """A model with two outputs and no weights is a ConfigError that names the field, not a value."""
    server.set(outputs=2)
    with pytest.raises(ConfigError, match=r"^reward_models.reward_model.outputs: the model has 2 outputs"):
        compute_score("reward_model", "It is 42.", None, EXTRA)


def test_ignored_activation(server: FaultServer) -> None:
    """A server that ignores `use_activation` without a word is a ConfigError with the remedy."""
    server.set(squash=True)
    with pytest.raises(ConfigError, match="ignores `use_activation` .* use vLLM 0.13"):
        compute_score("reward_model", "It is 42.", None, EXTRA)


def test_floor_below_0(server: FaultServer) -> None:
    """A floor below 0 is a value below 0, so a missing score must not count as 0."""
    with pytest.raises(ConfigError, match="on_error"):
        register_reward_model("deep", {"activation": "sigmoid", "floor": -5, "on_error": "zero"})
        score([sample("It is 42.", "deep")])


def test_too_long(server: FaultServer, table: Table) -> None:
    """A response beyond the model's context has the route's floor and a reason; others of its batch are scored."""
    register_reward_model("clipped", {"scale": 0.1, "clip": [-2, 2]})
    register_reward_model("floored", {"floor": -7, "scale": 2, "shift": 1})
    for source, floor in (("reward_model", -20.0), ("clipped", -2.0), ("floored", -7.0)):
        with table.case(source):
            found = score([sample("long " * 50, source), sample("It is 42.", source)])
            assert (found[0].value, found[0].status) == (floor, "ok")
            assert "longer than the reward model's context" in found[0].reason
            assert found[1].value is not None
            assert found[1].value > floor
            assert floor == scored("long " * 50, source).value  # also from the cache


def test_steps(server: FaultServer, table: Table) -> None:
    """A process reward model's value is an aggregate over the response's steps; tags in a response are no steps."""
    values = {"min": 0.1, "mean": (0.9 + 0.1) / 2, "product": 0.09, "last": 0.1}
    for aggregate, value in values.items():
        register_reward_model(aggregate, {"steps": {**STEPS, "aggregate": aggregate}})
        with table.case(aggregate):
            one = scored("6 * 7\n\n\n\n= 41, wrong", aggregate)
            assert math.isclose(value, one.value or 0)
            assert {"step_1": 0.9, "step_2": 0.1} == one.parts
    with table.case("tags of the policy's own"):
        one = scored("wrong<extra_0>fine<ext<extra_0>ra_0>fine", "min")
        assert (0.1, {"step_1": 0.1}) == (one.value, one.parts)
        assert 1 == asked(server)[-1]["messages"][-1]["content"].count("<extra_0>")
    for row in ([-3.2, 4.1], [0.1, 0.2, 0.7], [1.5]):
        server.set(steps=row)
        with table.case(f"{row} for a step"):
            one = scored("6 * 7", "min")
            assert (one.value, one.status) == (None, "failed")
            assert "one or two probabilities" in one.reason
    with table.case("no steps"):
        one = scored(" \n\n ", "min")
        assert (one.value, one.status, one.reason) == (0.0, "ok", "the response has no steps")


def test_faults(server: FaultServer, table: Table) -> None:
    """Each fault of the server has a status and a reason of its own, and none is a score."""
    register_reward_model("other", {"model": "other", "floor": 0})
    server.set(classify=False)
    with table.case("no classifier"):
        one = scored("a")
        assert (one.value, one.status) == (None, "failed")
        assert "--runner pooling" in one.reason
    server.set()
    with table.case("another model"):
        one = scored("b", "other")
        assert (one.value, one.status) == (None, "failed")
        assert "reward_models.other.model to one of: rm" in one.reason
    with table.case("raises by default"), pytest.raises(ScoringError):
        compute_score("other", "b", None, EXTRA)
    server.set(status=400)
    with table.case("refused"):
        assert "failed" == scored("c").status


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "floor: missing; set the value"),
    ({"floor": "low"}, "floor: must be a finite number, got 'low'"),
    ({"clip": [0, 1], "floor": 2}, r"floor: 2 is outside of clip"),
    ({"floor": 0, "base_url": ""}, "base_url: must be a base URL"),
    ({"floor": 0, "base_url": "ftp://x"}, "base_url: "),
    ({"floor": 0, "model": ""}, "model: must be a non-empty string, got ''"),
    ({"floor": 0, "base_url": "http://x", "api_key_env": "sk-1 2"}, "api_key_env: must be the name"),
    ({"floor": 0, "api_key_env": "KEY"}, "api_key_env: needs base_url"),
    ({"floor": 0, "outputs": [0, 0]}, "outputs: must have a weight other than 0"),
    ({"floor": 0, "outputs": 2}, "outputs: must be a list of weights"),
    ({"floor": 0, "activation": "softmax"}, "activation: must be one of none, sigmoid, got 'softmax'"),
    ({"steps": {}}, "steps.tag: missing"),
    ({"steps": {"tag": "x", "aggregate": "max"}}, "steps.aggregate: must be one of min, mean, product, last"),
    ({"steps": {"tag": "x", "tags": "y"}}, "steps.tags: is not known"),
    ({"steps": STEPS, "activation": "sigmoid"}, "steps: a process reward model"),
    ({"floor": 0, "scale": 0}, "scale: must not be 0"),
    ({"floor": 0, "api": "tgi"}, "api: must be one of vllm, tei, openrlhf, sglang, got 'tgi'"),
    ({"floor": 0, "api": "tei"}, r"template: api = tei needs a text with \{CANDIDATE_SOLUTION\}"),
    ({"floor": 0, "template": "{CANDIDATE_SOLUTION}"}, "template: is for api = tei, openrlhf, sglang"),
    ({"steps": STEPS, "api": "sglang", "template": "{CANDIDATE_SOLUTION}"}, "steps: needs api = vllm"),
    ({"floor": 0, "adress": "http://x"}, "adress: is not known; available: base_url"),
]


def test_refused(table: Table) -> None:
    """A field that cannot be used is refused with its name and what it must be."""
    for fields, message in REFUSED:
        with table.case(str(fields)), pytest.raises(RouteError, match=rf"^reward_models\.mine\.{message}"):
            reward_model_route("mine", fields)


def test_zero_policy(tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose reward model gives logits cannot have `on_error = zero`; one with `sigmoid` can."""
    file = tmp_path / "routes.json"
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(file))
    file.write_text(json.dumps({"reward_models": {"mine": {"floor": -5, "on_error": "zero"}}}))
    with pytest.raises(RouteError, match="^route 'mine', on_error"):
        compute_score("gsm8k", "#### 1", "1")
    file = tmp_path / "other.json"
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(file))
    file.write_text(
        json.dumps({"reward_models": {"mine": {"activation": "sigmoid", "on_error": "zero", "model": "x"}}})
    )
    assert 0.0 == compute_score("mine", "It is 42.", None, EXTRA)


def test_definition() -> None:
    """A reward model's route is shown as it was written."""
    spec = {"base_url": ["http://rm:8000"], "model": "rm", "outputs": [1.0, -1.0], "scale": 0.5, "floor": -5.0}
    found = definition(reward_model_route("mine", spec))
    assert {"base_url": ["http://rm:8000"], "model": "rm", "outputs": [1.0, -1.0]} == found["reward_model"]
    assert (0.5, -5.0) == (found["scale"], found["floor"])


def test_cached(server: FaultServer) -> None:
    """A second call asks nothing; another conversation or another model of the table does."""
    register_reward_model("squashed", {"activation": "sigmoid"})
    first = scored("Cached.")
    count = len(asked(server))
    again = scored("Cached.")
    assert (first.value, False, True) == (again.value, first.cached, again.cached)
    assert count == len(asked(server))
    scored("Cached.", problem="Another?")
    scored("Cached.", "squashed")
    assert count + 2 == len(asked(server))


def test_many(server: FaultServer) -> None:
    """512 samples in flight come back in order, each by a request of its own."""
    found = score([sample("word " * (at % 30 + 1) + str(at)) for at in range(512)])
    assert [-(at % 30 + 2.0) for at in range(512)] == [one.value for one in found]
    assert 512 == len(asked(server))


def test_composite(server: FaultServer) -> None:
    """A reward model is a part of a sum, with its shaped value."""
    register_reward_model("half", {"scale": 0.5, "floor": -5})
    register_route("mix", {"sum": ["half", "exact_match"]})
    [one] = score([Request("mix", "It is 42.", "It is 42.", EXTRA)])
    assert (-0.5, {"half": -1.5, "exact_match": 1.0}) == (one.value, one.parts)


def test_explained(server: FaultServer) -> None:
    """An explanation has the conversation, the exchange and the value."""
    explanation = explained(sample())
    assert explanation.score is not None
    assert -3.0 == explanation.score.value
    [step] = [one for one in explanation.steps if one.name == "reward model"]
    assert any("classify" in str(one.facts) + one.name for one in step.steps)


def test_key(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of the file gets its own key, never the environment's."""
    monkeypatch.setenv("REWARD_MODEL_SERVER_API_KEY", "key-of-the-environment")
    monkeypatch.setenv("OTHER_KEY", "key-of-the-other-one")
    register_reward_model("keyed", {"base_url": server.url, "api_key_env": "OTHER_KEY", "floor": 0})
    register_reward_model("open", {"base_url": server.url + "/", "floor": 0})
    for source, key in (("reward_model", "environment"), ("keyed", "other-one"), ("open", "")):
        scored(uuid.uuid4().hex, source)
        assert asked(server)[-1]["key"].endswith(key)


def test_over_http(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward server scores by its own reward models; a client that knows none of them asks it."""
    routes = tmp_path / "routes.json"
    routes.write_text(json.dumps({"reward_models": {"mine": {"scale": 2, "floor": -8}}}))
    settings = {"REWARD_MODEL_SERVER_URL": server.url, "REWARDSTACK_ROUTES": routes}
    with running(tmp_path, "--workers", "1", **settings) as rules:
        reply = rules.score({"data_source": "mine", "solution_str": "It is 42.", "extra_info": EXTRA})
        assert [-6.0] == [one["value"] for one in reply]
        monkeypatch.delenv("REWARD_MODEL_SERVER_URL")
        monkeypatch.setenv("REWARD_SERVER_URL", rules.url)
        monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
        assert [-6.0, -8.0] == [one.value for one in score([sample("It is 42.", "mine"), sample("a " * 60, "mine")])]
        assert [-3.0] == [one.value for one in score([sample()])]


def test_health_without_a_key(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose key is not set is left out of the services' health, and the others are asked."""
    monkeypatch.setattr("rewardstack.scorers.service_health.TIMEOUT", 60.0)
    table = {"base_url": server.url, "floor": 0}
    routes = RouteTable([reward_model_route("keyed", {**table, "api_key_env": "ABSENT"})])
    routes.add(reward_model_route("open", table))
    found = asyncio.run(service_health(Settings.from_env(), routes))
    assert [(one.service, one.up) for one in found] == [("reward model open", True)]


def test_check(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rewardstack check` shows the model and its logits, and what is wrong with a server that hides them."""
    monkeypatch.setenv("COLUMNS", "400")  # no cell of the table is wrapped, however many milliseconds it shows
    status, told = check()
    assert (0, True) == (status, "logits [-1.0]" in told)
    server.set(squash=True)
    status, told = check()
    assert (1, True) == (status, "probabilities instead of raw logits" in told)


def test_document(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's first example runs, and its tables are read."""
    found = [(one.language, one.text) for one in snippets() if one.page == "docs/reward_models.md"]
    [code] = [text for language, text in found if language == "python"]
    exec(compile(code, "reward_models.md", "exec"), {})  # noqa: S102 - the page's own example
    monkeypatch.setenv("SAFETY_KEY", "key")
    for number, text in enumerate(text for language, text in found if language == "toml"):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        monkeypatch.setenv("REWARDSTACK_ROUTES", str(file))
        assert 1.0 == compute_score("gsm8k", "#### 42", "42")
