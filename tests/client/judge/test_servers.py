"""Judges behind other people's servers: what each does not take is found out once, and what it does take is used."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardstack import score
from rewardstack.errors import ConfigError, SettingsError
from rewardstack.scorers.judge.api import api_path
from tests.client.check_command import run_check
from tests.client.judge.conftest import JUDGE, sample
from tests.client.judge.strict_judges import SERVERS, slug
from tests.support.servers import FaultServer
from tests.support.table import Table

WITH_PROBABILITIES = [name for name, server in SERVERS.items() if server["top_logprobs"]]
WITHOUT = [name for name in SERVERS if name not in WITH_PROBABILITIES]
THINKING = [name for name, server in SERVERS.items() if "reasoning" in server]
KNOWN = ("vllm 0.32", "sglang", "llama.cpp", "ollama", "tgi")
"""Those that are known by what they say they are."""


@pytest.fixture(scope="module")
def all_judges() -> Iterator[FaultServer]:
    """The process in which all of them are."""
    server = FaultServer(script=Path(__file__).with_name("strict_judges.py"))
    yield server
    server.kill()


class StrictJudge:
    """One of them.

    Args:
        process: in which it is.
        name: in `judge_servers.json`.
    """

    def __init__(self, process: FaultServer, name: str) -> None:
        self.name, self.server = name, SERVERS[name]
        self.url = f"{process.url}/{slug(name)}{self.server.get('base', '')}"
        self._process = process

    def bodies(self) -> list[dict[str, Any]]:
        """What it was sent."""
        return list(self._process.stats()["bodies"].get(self.name, []))

    def refused(self) -> int:
        """How many requests it did not take."""
        return int(self._process.stats()["refused"].get(self.name, 0))

    def other_paths(self) -> list[str]:
        """What else it was asked."""
        return list(self._process.stats()["other_paths"].get(self.name, []))


Ask = Callable[[str], StrictJudge]


@pytest.fixture
def ask(all_judges: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Names the judge of a case, for a client without memory of it."""

    def name_judge(name: str) -> StrictJudge:
        all_judges.set(reset=True)
        judge = StrictJudge(all_judges, name)
        monkeypatch.setenv("LLM_JUDGE_SERVER_URL", judge.url)
        monkeypatch.setenv("LLM_JUDGE_SERVER_API_KEY", uuid.uuid4().hex)  # another key is another judge to the client
        monkeypatch.setenv("JUDGE_REVISION", uuid.uuid4().hex)
        monkeypatch.setenv("LLM_JUDGE_HEADERS", ": ".join(judge.server.get("header", ["X-Any", "thing"])))
        monkeypatch.setenv("LLM_JUDGE_QUERY", "=".join(judge.server.get("query", ["any", "thing"])))
        return judge

    return name_judge


@pytest.fixture
def judge(ask: Ask, request: pytest.FixtureRequest) -> StrictJudge:
    """The judge that the test names."""
    return ask(request.param)


def each(names: Sequence[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("judge", names, ids=map(slug, names), indirect=True)


def test_pages() -> None:
    """Each fake names the pages that it is made from."""
    assert all(page.startswith("https://") for server in SERVERS.values() for page in server["pages"])
    assert all(server["pages"] for server in SERVERS.values())


def test_verdicts(ask: Ask, table: Table) -> None:
    """Every sample of a batch has its verdict; what the server does not take was found out before, and is not sent."""
    for name in SERVERS:
        with table.case(slug(name)):
            judge = ask(name)
            scores = score([sample(f"It is {number}.") for number in range(32)])
            assert [("ok", 0.75)] * 32 == [(one.status, one.value) for one in scores], scores[0].reason
            assert judge.refused() <= 6
            score([sample("Another.")])
            (last,) = judge.bodies()[-1:]
            assert judge.refused() < len(judge.bodies()) and set(last) <= set(judge.server["takes"])


@each(["openai", "openai, a model that thinks"])
@pytest.mark.parametrize("switch", ["environment", "sample"])
def test_without_cache(judge: StrictJudge, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    """What a server does not take is found out before a batch whose scores are not kept, too."""
    monkeypatch.setenv("REWARD_CACHE", "off" if switch == "environment" else "on")
    extra: dict[str, Any] = {} if switch == "environment" else {"cache_enabled": False}
    scores = score([sample(f"It is {number}.", **extra) for number in range(32)])
    assert {("ok", 0.75)} == {(one.status, one.value) for one in scores}, scores[0].reason
    assert judge.refused() <= 6


def test_usage_with_and_without_cache(ask: Ask, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """The first sample costs what it was asked itself: a trial of the interface is not charged to it."""
    for name in SERVERS:
        for cache in ("on", "off"):
            with table.case(f"{slug(name)}, cache {cache}"):
                ask(name)
                monkeypatch.setenv("REWARD_CACHE", cache)
                (one,) = score([sample(f"It is {cache}.")])
                assert one.usage is not None
                assert 1 == one.usage.requests


@each(["openai, a model that thinks"])
def test_kinds(judge: StrictJudge) -> None:
    """Requests in words are tried out, too, where one by labels that is not taken has the same fields."""
    with pytest.raises(ConfigError):
        score([sample(verdict="logprob")])
    before = judge.refused()
    scores = score([sample(f"It is {number}.", enable_thinking=True) for number in range(32)])
    assert {"ok"} == {one.status for one in scores}
    assert judge.refused() - before <= 6


@each(KNOWN)
def test_known_servers(judge: StrictJudge) -> None:
    """A server that says what it is refuses nothing, and is sent nothing beside the samples."""
    score([sample(f"It is {number}.") for number in range(4)])
    assert (4, 0) == (len(judge.bodies()), judge.refused())


def test_form(ask: Ask, table: Table) -> None:
    """The reply is held to its form where the server can do so."""
    for name in SERVERS:
        with table.case(slug(name)):
            judge = ask(name)
            for template in ("default", "points", "binary"):
                (one,) = score([sample(prompt_template=template)])
                assert ("ok", 0.75) == (one.status, one.value), one.reason
            (last,) = judge.bodies()[-1:]
            held = {"structured_outputs", "guided_regex", "regex", "response_format"} & set(last)
            assert bool(judge.server["forms"]) == bool(held)


def test_rubrics(ask: Ask, table: Table) -> None:
    """Every server decides a rubric in one request, held to a form where the server can do so."""
    for name in SERVERS:
        with table.case(slug(name)):
            judge = ask(name)
            (one,) = score([sample(verdict="rubric", rubrics=["Says 6", "Says 7", "Says 42"])])
            assert ("ok", 1.0, "3 of 3 met") == (one.status, one.value, one.reason), one.reason
            (last,) = judge.bodies()[-1:]
            held = {"structured_outputs", "guided_regex", "regex", "response_format"} & set(last)
            assert bool(judge.server["forms"]) == bool(held)


def test_cache(ask: Ask, table: Table) -> None:
    """A deterministic verdict is cached; a value of the sample that the server rejects makes the sample unscored."""
    for name in SERVERS:
        with table.case(slug(name)):
            ask(name)
            cold = {"temperature": 0, "seed": 1}
            first, second = (score([sample("the same", **cold)])[0] for _ in range(2))
            if name in ("openai, a model that thinks", "mistral"):
                assert "unscored" == first.status and "the judge rejects the value" in first.reason
                continue
            assert ("ok", False) == (first.status, first.cached)
            assert second.cached


@each(["openai, a model that thinks"])
def test_temperature_that_is_not_taken(judge: StrictJudge) -> None:
    """Verdicts are not cached where the server demands another temperature, and a sample's own is not replaced."""
    first, second = (score([sample("the same")])[0] for _ in range(2))
    assert [("ok", False)] * 2 == [(one.status, one.cached) for one in (first, second)]
    last = judge.bodies()[-1]
    assert (1, 512 + 4096) == (last["temperature"], last["max_completion_tokens"]) and "top_p" not in last
    cold, hot = score([sample("cold", temperature=0), sample("hot", temperature=1)])
    assert ("unscored", "ok") == (cold.status, hot.status)
    assert "extra_info.temperature: the judge rejects the value 0" in cold.reason


@pytest.mark.usefixtures("needs_process")
@each(["openai, a model that thinks"])
def test_a_second_run(judge: StrictJudge, tmp_path: Path) -> None:
    """A file is taken up again whose judge has no deterministic verdicts: their keys say nothing of who judges."""
    rows, command = (
        tmp_path / "in.jsonl",
        [sys.executable, "-m", "rewardstack_cli", "score", "in.jsonl", "-o", "out.jsonl"],
    )
    for number in range(2):
        row = {"data_source": JUDGE, "solution_str": f"It is {number}.", "ground_truth": "42"}
        with rows.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert 0 == done.returncode, done.stdout + done.stderr
    assert 2 == len((tmp_path / "out.jsonl").read_text().splitlines())


@each(WITH_PROBABILITIES)
def test_probabilities(judge: StrictJudge) -> None:
    """The expected value over the labels is read by token ids, or among the likeliest tokens."""
    one, _ = score([sample(text, verdict="logprob") for text in ("It is 42.", "It is 43.")])
    assert "ok" == one.status, one.reason
    assert one.value == pytest.approx((0.6 + 0.2 * 6 / 9) / 0.9, abs=1e-6)
    assert one.label_mass == pytest.approx(0.9, abs=1e-6)


@each(WITHOUT)
def test_no_probabilities(judge: StrictJudge) -> None:
    """`verdict: "logprob"` of a judge that gives none is an error of who configured it, and names the remedy."""
    with pytest.raises(ConfigError, match="the judge returns none for small; leave `verdict` out") as raised:
        score([sample(verdict="logprob"), sample("another", verdict="logprob")])
    assert "extra_info.verdict" == raised.value.field
    assert "ok" == score([sample()])[0].status


@each(THINKING)
def test_reasoning(judge: StrictJudge) -> None:
    """Reasoning is asked for in the server's own way, and not read for a verdict, in whichever field it is."""
    (one,) = score([sample(enable_thinking=True)])
    assert ("ok", 0.75) == (one.status, one.value)
    last = judge.bodies()[-1]
    assert last.get("chat_template_kwargs", {"enable_thinking": True}) == {"enable_thinking": True}
    assert last.get("reasoning_effort", "medium") == "medium"


def test_check(ask: Ask, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """`rewardstack check` is content with each of them, and needs no path that it does not have."""
    monkeypatch.setenv("COLUMNS", "300")
    for name in SERVERS:
        with table.case(slug(name)):
            judge = ask(name)
            done = run_check()
            assert 0 == done.status, done.out + done.err
            assert "verdict 0.750" in done.out and "small" in done.out
            assert ("verdict 'logprob' cannot be used" in done.out) == (not judge.server["top_logprobs"])
            assert ("label mass 0.90" in done.out) == bool(judge.server["top_logprobs"])


@each(["openai", "llama.cpp"])
def test_address(judge: StrictJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base URL may end in /v1, in the environment and in a sample."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", f"{judge.url}/v1/")
    mine, own = score([sample(), sample(server_url=f"{judge.url}/v1")])
    assert ("ok", "ok") == (mine.status, own.status), (mine.reason, own.reason)


@pytest.mark.parametrize(
    ("urls", "path"),
    [
        (["http://a:8000"], "/v1/chat/completions"),
        (["https://a/openai"], "/v1/chat/completions"),
        (["https://a/api/v3"], "/chat/completions"),
        (["https://a/v1beta/openai"], "/chat/completions"),
        (["https://a/openai/deployments/gpt"], "/chat/completions"),
        (["https://a/v1/judge"], "/v1/chat/completions"),
    ],
)
def test_paths(urls: list[str], path: str) -> None:
    """A base URL with a version at its end, or Azure's, has the interface right below it."""
    assert path == api_path(tuple(urls), "/chat/completions")


def test_mixed_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equivalent judges, of which some have a version at the end and some not, are an error that names them."""
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", "http://127.0.0.1:9,http://127.0.0.1:9/v2")
    says = "LLM_JUDGE_SERVER_URL: .*127.0.0.1:9/v2: either all or none of a judge's URLs"
    for extra in ({}, {"api_key": "mine"}):
        with pytest.raises(SettingsError, match=says) as raised:
            score([sample(**extra)])
        assert "LLM_JUDGE_SERVER_URL" == raised.value.field


@each(["openai"])
def test_mixed_addresses_of_a_sample(judge: StrictJudge) -> None:
    """Where a sample names such judges itself, it alone has no score, and a reason that names the field."""
    one, two = score([sample(), sample(server_url="http://127.0.0.1:9,http://127.0.0.1:9/v2")])
    assert ("ok", "unscored") == (one.status, two.status)
    assert two.reason.startswith("extra_info.server_url: ") and "either all or none of a judge's URLs" in two.reason


@each(["azure"])
def test_headers_go_to_the_environments_judge_alone(judge: StrictJudge, all_judges: FaultServer) -> None:
    """Neither headers nor query parameters of the environment go to a server that a sample names."""
    one, other = score([sample(), sample(server_url=judge.url + "2")])
    assert "ok" == one.status and "401" not in one.reason
    assert "failed" == other.status and "azure-key" not in other.reason and "2024-10-21" not in other.reason


@each(["openai"])
def test_unsupported_fields_are_logged_once(judge: StrictJudge, caplog: pytest.LogCaptureFixture) -> None:
    """The log says once which field a server does not support."""
    with caplog.at_level(logging.WARNING):
        score([sample(str(number)) for number in range(8)])
        score([sample("more")])
    lines = [record.getMessage() for record in caplog.records if "now leave it out" in record.getMessage()]
    assert 1 == len(lines) and "small rejects chat_template_kwargs" in lines[0]
    assert 'set options.omit = ["chat_template_kwargs"] in the judge' in lines[0]


def test_cases_are_complete() -> None:
    """There is a fake of each kind of server that the documents name."""
    text = json.dumps(list(SERVERS))
    kinds = ("openai", "azure", "vllm", "sglang", "llama.cpp", "ollama", "litellm", "tgi")
    assert all(kind in text for kind in kinds)
