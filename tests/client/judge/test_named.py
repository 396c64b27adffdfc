"""Judges by name: what a routes file says of them, whom they ask, and routes that are made of several."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, client, register_judge, score
from rewardstack.client import route_table
from rewardstack.errors import RequestError, RouteError, SettingsError
from rewardstack.routing.syntax import load_judges
from rewardstack.settings import Settings
from tests.client.judge.conftest import asked
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES = json.loads((Path(__file__).parents[2] / "cases" / "judges.json").read_text())
SMALL = {"base_url": "http://a:1", "model": "m", "template": "binary", "options": {"temperature": 0}}
JUDGES = {
    "small": SMALL,
    "again": {**SMALL, "api_key_env": "KEY"},
    "strict": {**SMALL, "template": "detailed"},
    "large": {"model": "m"},
}
Routed = Callable[..., None]


@pytest.fixture(autouse=True)
def no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test registers its own judges."""
    monkeypatch.setattr(client, "_registered", {})


@pytest.fixture
def routed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Routed:
    """Puts judges and routes in force."""

    def write(judges: dict[str, Any], **routes: Any) -> None:
        path = tmp_path / "routes.json"
        path.write_text(json.dumps({"judges": judges, "routes": routes}))
        monkeypatch.setenv("REWARDSTACK_ROUTES", str(path))

    return write


def one(source: str, solution: str = "It is 42.", **extra: Any) -> Score:
    """The score of one sample."""
    (found,) = score([Request(source, solution, "42", {"problem": "6 times 7?", **extra})], on_error="none")
    return found


def test_malformed_table(routed: Routed, table: Table) -> None:
    """A table that cannot be used is refused before anything is scored: by its field, and never with a key."""
    for at, case in enumerate(CASES["malformed"]):
        with table.case(f"{at} {case['field']}"):
            routed({"small": case["table"]})
            with pytest.raises(RouteError) as caught:
                route_table(Settings.from_env())
            assert (case["field"], True) == (caught.value.field, case["message"] in str(caught.value))
            assert case["field"] in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("name", CASES["names"])
def test_malformed_name(name: str) -> None:
    """A judge's name is one that an address can end with."""
    with pytest.raises(RouteError, match="judges: invalid name .*; use at most 64 letters"):
        register_judge(name, SMALL)


@pytest.mark.parametrize("name", ["gsm8k", "llm_judge_remote", "mine"])
def test_taken_name(routed: Routed, name: str) -> None:
    """Judges and routes have their names in common."""
    routed({name: SMALL}, mine="gsm8k")
    with pytest.raises(RouteError, match=f"route '{name}' is (built-in; choose another|defined twice; rename)"):
        route_table(Settings.from_env())


@pytest.mark.parametrize("case", CASES["twins"], ids=lambda case: json.dumps(case["route"]))
def test_same_judge_twice(routed: Routed, case: dict[str, Any]) -> None:
    """Two parts that ask the same judge for the same thing are refused at the start, both by their names."""
    routed(JUDGES, mine=case["route"], alias="small")
    first, second = case["parts"]
    with pytest.raises(RouteError, match=f"route 'mine': '{first}' and '{second}' ask the same judge"):
        route_table(Settings.from_env())


@pytest.mark.parametrize("part", ["gsm8k", "alias"])
def test_votes_where_there_are_none(routed: Routed, part: str) -> None:
    """That votes shall agree is refused of a part that has none."""
    routed(JUDGES, mine={"cascade": [{"route": part, "agreement": 0.5}, "small"]}, alias="embedding_remote")
    with pytest.raises(RouteError, match=f"route 'mine', cascade.agreement: '{part}' has no votes"):
        route_table(Settings.from_env())


@pytest.mark.parametrize("spec", CASES["no_twins"], ids=json.dumps)
def test_different_judges(routed: Routed, spec: dict[str, Any]) -> None:
    """Parts that differ in whom they ask or for what are no twins, nor is a part of a part."""
    routed(JUDGES, mine=spec, both={"sum": ["small", "large"]})
    assert "mine" in route_table(Settings.from_env()).names()


def test_file_of_judges_alone(tmp_path: Path) -> None:
    """A file may hold judges alone; a template's path begins at the file."""
    (tmp_path / "judge.txt").write_text("Rate {CANDIDATE_SOLUTION}.")
    path = tmp_path / "routes.toml"
    path.write_text('[judges.a]\nmodel = "m"\ntemplate_path = "judge.txt"\nreplicas = 2\n')
    (judge,) = load_judges(str(path))
    assert {"model": "m", "template": "Rate {CANDIDATE_SOLUTION}.", "replicas": 2} == judge.definition


def test_judge_with_an_address(routed: Routed, judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked there, for its model, with its own key alone, and its scores bear its name."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LLM_JUDGE_SERVER_API_KEY", "environment's")
    monkeypatch.setenv("LLM_JUDGE_HEADERS", "X-Own=environment's")
    monkeypatch.setenv("SMALL_KEY", "small's")
    judge.set(content="REWARD: 0.500")
    routed({"keyed": {**SMALL, "base_url": judge.url, "api_key_env": "SMALL_KEY"}, "bare": {"base_url": judge.url}})
    assert [(0.5, "llm_judge:keyed"), (0.5, "llm_judge:bare")] == [
        (found.value, found.source) for found in (one("keyed_1"), one("bare"))
    ]
    keyed, bare = asked(judge)
    assert ("m", "small") == (keyed["model"], bare["model"])
    assert ("Bearer small's", None) == (keyed["headers"].get("Authorization"), bare["headers"].get("Authorization"))
    assert not any("X-Own" in body["headers"] for body in (keyed, bare))


def test_judge_without_an_address(routed: Routed, judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked below the environment's judges, with their key."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_API_KEY", "environment's")
    routed({"large": {"model": "m"}})
    assert "ok" == one("large").status
    assert "/judges/large/v1/chat/completions" in judge.stats()["paths"]
    assert "Bearer environment's" == asked(judge)[0]["headers"]["Authorization"]


def test_judge_without_an_address_and_nobody_to_ask(routed: Routed) -> None:
    """Where no server is set, the error names the variable."""
    routed({"large": {"model": "m"}})
    with pytest.raises(SettingsError, match="LLM_JUDGE_SERVER_URL is not set"):
        one("large")


def test_variable_without_a_key(routed: Routed, judge: FaultServer) -> None:
    """A judge whose key is not set is an error that names the variable, and it is not asked without."""
    routed({"small": {"base_url": judge.url, "api_key_env": "SMALL_KEY"}})
    with pytest.raises(SettingsError, match="SMALL_KEY is not set"):
        one("small")
    assert [] == asked(judge)


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ({"api_key_env": "SMALL_KEY"}, "refuses the key in SMALL_KEY; set it"),
        ({}, "no key was sent; set judges.small.api_key_env to the name of a variable, and that variable to one"),
    ],
    ids=["wrong", "missing"],
)
def test_refused_key(
    routed: Routed, judge: FaultServer, monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], remedy: str
) -> None:
    """A judge that does not take the key is a failure whose reason has the remedy."""
    monkeypatch.setenv("SMALL_KEY", "wrong")
    judge.set(status=401)
    routed({"small": {"base_url": judge.url, **table}})
    found = one("small")
    assert "failed" == found.status
    assert remedy in found.reason


def test_what_the_file_says_holds(routed: Routed, judge: FaultServer) -> None:
    """The file's options and template hold; a sample says what the file leaves open."""
    routed({"small": {**SMALL, "base_url": judge.url}})
    one("small", temperature=2, top_p=0.5, prompt_template="points", prompt_template_path="/absent")
    (body,) = asked(judge)
    assert (0, 0.5) == (body["temperature"], body["top_p"])
    assert {"regex": r"REWARD: [01]\.000"} == body["structured_outputs"]


def test_sample_that_names_another_judge(routed: Routed, judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A sample moves a named judge neither to another server nor to another model; that is said once."""
    routed({"unmoved": {"base_url": judge.url, "model": "m"}})
    overrides = {"server_url": "http://127.0.0.1:9", "api_key": "own", "model_name": "other"}
    with caplog.at_level(logging.WARNING):
        assert ["ok", "ok"] == [one("unmoved", solution, **overrides).status for solution in ("a", "b")]
    assert [("m", None)] * 2 == [(body["model"], body["headers"].get("Authorization")) for body in asked(judge)]
    assert sorted(overrides) == sorted(
        record.message.split()[0].removeprefix("extra_info.")
        for record in caplog.records
        if "has no effect on the judge 'unmoved'" in record.message
    )


def test_nothing_is_mixed_in_the_cache(routed: Routed, judge: FaultServer) -> None:
    """A verdict is found again under the judge's name and options, and under no others."""
    same = {"base_url": judge.url, "model": "small", "options": {"temperature": 0}}
    routed({"a": same, "b": same, "c": {**same, "options": {"temperature": 0, "top_p": 0.5}}})
    first = [one(name) for name in "abc"]
    again = [one(name) for name in "abc"]
    assert ([False] * 3, [True] * 3) == ([found.cached for found in first], [found.cached for found in again])
    assert [found.source for found in first] == [found.source for found in again] == [f"llm_judge:{n}" for n in "abc"]


def test_option_of_the_file_that_the_judge_cannot_serve(routed: Routed, judge: FaultServer) -> None:
    """What a judge cannot do of what the file asks is said by the name that it has there."""
    judge.set(owned_by="vllm", ignores=["logprob_token_ids"])
    labels = {"Not one token": 1, "N": 0}
    routed({"small": {"base_url": judge.url, "options": {"verdict": "logprob", "labels": labels}}})
    found = one("small")
    assert "unscored" == found.status and found.reason.startswith("judges.small.options.labels: 'Not one token'")


def test_probabilities_that_the_file_asks_for_in_vain(routed: Routed, judge: FaultServer) -> None:
    """That a judge gives none is an error of who wrote the file, by the field that is wrong there."""
    choice = {"message": {"content": "1"}, "logprobs": None, "finish_reason": "stop"}
    judge.set(owned_by="sglang", raw=json.dumps({"choices": [choice]}))
    routed({"small": {"base_url": judge.url, "options": {"verdict": "logprob"}}})
    with pytest.raises(RequestError, match="^judges.small.options.verdict: .*leave `verdict` out") as caught:
        one("small")
    assert "judges.small.options.verdict" == caught.value.field


def test_registered_judge(judge: FaultServer) -> None:
    """A judge is added in code as well."""
    register_judge("mine", {"base_url": judge.url, "model": "m"})
    assert "llm_judge:mine" == one("mine").source
    with pytest.raises(RouteError, match="defined twice"):
        register_judge("mine", {"base_url": judge.url})


def several(judge: FaultServer) -> dict[str, Any]:
    """Three judges on one server."""
    return {name: {"base_url": judge.url, "model": name} for name in ("small", "medium", "large")}


def test_sum_of_judges(routed: Routed, judge: FaultServer) -> None:
    """A sum asks several judges, and shows what each says."""
    judge.set(by_model={"small": "REWARD: 0.500", "large": "REWARD: 1.000"})
    routed(several(judge), both={"sum": [{"route": "small", "weight": 0.5}, {"route": "large", "weight": 0.5}]})
    found = one("both")
    assert (0.75, {"small": 0.5, "large": 1.0}) == (found.value, found.parts)
    assert "llm_judge:small+llm_judge:large" == found.source


@pytest.mark.parametrize(
    ("verdicts", "on_part_error", "value", "agreement"),
    [
        (("0.500", "1.000", "0.500"), "fail", 0.5, 2 / 3),
        (("0.250", "1.000", "0.500"), "fail", 1.75 / 3, 1 / 3),
        (("1.000", "1.000", "none"), "fail", None, None),
        (("1.000", "1.000", "none"), "skip", 1.0, 2 / 3),
        (("1.000", "none", "none"), "zero", 0.0, 2 / 3),
        (("none", "none", "none"), "zero", None, None),
    ],
)
def test_majority_of_judges(
    routed: Routed,
    judge: FaultServer,
    verdicts: tuple[str, ...],
    on_part_error: str,
    value: float | None,
    agreement: float | None,
) -> None:
    """The value of most parts counts, the mean of several such, with their share; `on_part_error` decides the rest."""
    names = ("small", "medium", "large")
    judge.set(by_model={name: f"REWARD: {verdict}" for name, verdict in zip(names, verdicts, strict=True)})
    routed(several(judge), most={"majority": list(names), "on_part_error": on_part_error})
    found = one("most")
    assert (pytest.approx(value), pytest.approx(agreement)) == (found.value, found.agreement)
    assert found.status == ("failed" if value is None else "fallback" if "none" in verdicts else "ok")


@pytest.mark.parametrize(
    ("verdict", "source"),
    [("0.100", "small"), ("0.200", "small"), ("0.201", "large"), ("0.799", "large"), ("0.800", "small")],
)
def test_unsure(routed: Routed, judge: FaultServer, verdict: str, source: str) -> None:
    """A verdict between two bounds, and no other, is left to the next judge, and what that one says stands."""
    judge.set(by_model={"small": f"REWARD: {verdict}", "large": "REWARD: 1.000"})
    routed(several(judge), hard={"cascade": [{"route": "small", "unsure": [0.2, 0.8]}, "large"]})
    assert f"llm_judge:{source}" == one("hard").source
    assert (["small", "large"] if source == "large" else ["small"]) == [body["model"] for body in asked(judge)]


@pytest.mark.parametrize(
    ("votes", "agreement", "source"),
    [
        ("1 1 1 1", 1.0, "small"),
        ("1 1 1 0", 0.75, "small"),
        ("1 1 0 0", 0.5, "large"),
        ("1 1 1 none", 0.75, "small"),
        ("1 0 1 none", 0.5, "large"),
    ],
)
def test_votes_that_differ(routed: Routed, judge: FaultServer, votes: str, agreement: float, source: str) -> None:
    """Where a smaller share of a judge's votes agrees, the next one is asked; a vote that cannot be read agrees not."""
    judge.set(replies=[f"REWARD: {vote}" for vote in votes.split()], by_model={"large": "REWARD: 0.500"})
    judges = several(judge)
    judges["small"]["options"] = {"num_samples": 4, "aggregate": "majority"}
    routed(judges, hard={"cascade": [{"route": "small", "agreement": 0.75}, "large"]}, alone="small")
    found = one("hard")
    assert (f"llm_judge:{source}", None if source == "large" else agreement) == (found.source, found.agreement)


def test_votes_behind_a_gate(routed: Routed, judge: FaultServer) -> None:
    """How far the votes agree is said of the whole of a gate, too, so that a cascade made of it can decide."""
    judge.set(replies=["REWARD: 1"] * 5)
    judges = several(judge)
    judges["medium"]["options"] = {"num_samples": 4}
    hard = {"cascade": [{"route": "gated", "agreement": 0.75}, "large"]}
    routed(judges, gated={"gate": "small", "then": "medium"}, hard=hard)
    found = one("hard")
    assert (1.0, 1.0, "llm_judge:small+llm_judge:medium") == (found.value, found.agreement, found.source)


def test_agreement_is_remembered(routed: Routed, judge: FaultServer) -> None:
    """A score from the cache says how far its votes agreed, so that a cascade decides as it did before."""
    judge.set(replies=["REWARD: 1", "REWARD: 1", "REWARD: 0"])
    routed({"small": {"base_url": judge.url, "options": {"num_samples": 3}}})
    first, again = one("small"), one("small")
    assert [(False, pytest.approx(2 / 3)), (True, pytest.approx(2 / 3))] == [
        (found.cached, found.agreement) for found in (first, again)
    ]


def test_score_without_votes_is_undecided(routed: Routed, judge: FaultServer) -> None:
    """A part that has no votes to agree leaves a sample to the next one."""
    routed(several(judge), hard={"cascade": [{"route": "small", "agreement": 0.5}, "large"]})
    assert "llm_judge:large" == one("hard").source
