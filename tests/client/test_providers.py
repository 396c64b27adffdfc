"""Model servers of many providers, as users report them: status, value and requests of each case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, client, register_judge, register_reward_model, score
from rewardstack.client import route_table
from rewardstack.errors import OverloadError, RejectedError, ReplyError, RewardstackError
from rewardstack.scorers.judge.reply import read_completion
from rewardstack.settings import Settings
from rewardstack.transport import timing
from rewardstack.transport.message import Reply, parse_reply, to_error
from tests.client.providers import Json, Provider, providers
from tests.support.snippets import block
from tests.support.table import Table

CASES: list[Json] = json.loads((Path(__file__).parents[1] / "cases/providers.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the tests clients and judges of their own; on a busy machine, no request is sent twice."""
    monkeypatch.setattr(client, "_registered", {})
    monkeypatch.setattr(timing, "MIN_STUCK", 60.0)
    monkeypatch.setattr(timing, "PROBE_AFTER", 3600.0)
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    monkeypatch.setenv("REWARD_CACHE", "off")
    monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", "60")


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Provider]]:
    """Serve all cases."""
    with providers(CASES) as all_providers:
        yield all_providers


def expand(value: Any) -> Any:
    """Return a value of the table with each `{"repeat": [text, count]}` replaced by the text."""
    if isinstance(value, dict):
        if "repeat" in value:
            text, count = value["repeat"]
            return text * count
        return {name: expand(one) for name, one in value.items()}
    return [expand(one) for one in value] if isinstance(value, list) else value


def requests_of(case: Json, name: str, solution: str = "") -> list[Request]:
    """Return the samples of a case."""
    extra = {"problem": "What is 6 times 7?"} if "extra" not in case or "prompt" not in case["extra"] else {}
    extra |= expand(case.get("extra", {}))
    texts = [solution or expand(case.get("solution", "It is 42."))]
    if case.get("samples", 1) > 1:
        texts = [f"It is {number}." for number in range(case["samples"])]
    return [Request(name, text, expand(case.get("reference", "42")), extra) for text in texts]


def score_case(case: Json, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> list[Score]:
    """Score the samples of a case, and those of the request after it."""
    name = f"case{provider.url.rsplit('/', 1)[1]}"
    scorer = case.get("scorer", "judge")
    if scorer == "embedding":
        monkeypatch.setenv("EMBEDDING_SERVER_URL", provider.url)
        name = "embedding_remote_similarity_test"
    elif scorer == "reward_model":
        register_reward_model(name, {"base_url": provider.url, **case["table"]})
    else:
        register_judge(name, {"base_url": provider.url, "model": "judge-x", **case.get("judge", {})})
    scores = score(requests_of(case, name), on_error="none" if scorer != "embedding" else None)
    if "then" in case:
        after = {name: one for name, one in case.items() if name != "extra"}
        score(requests_of(after, name, "Another."), on_error="none")
    return scores


def test_case(servers: list[Provider], monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Each case has its status and value, and sends what the server accepts."""
    for case, provider in zip(CASES, servers, strict=True):
        with table.case(f"{case['kind']}: {case['name']}"):
            if case["status"] == "raises":
                with pytest.raises(RewardstackError, match=case["reason"]):
                    score_case(case, provider, monkeypatch)
                continue
            scores = score_case(case, provider, monkeypatch)
            assert_scores(case, scores)
            assert_sent(case, provider)


def test_overload(table: Table) -> None:
    """Each overload is waited for, whatever its status is, and other errors are not."""
    for case in (case for case in CASES if case["kind"] == "overload"):
        with table.case(case["name"]):
            rule = case["rules"][0]
            reply = Reply("http://judge", rule["status"], rule.get("headers", {}), json.dumps(rule["body"]).encode())
            with pytest.raises(OverloadError):
                parse_reply(reply, read_completion)
    for status in (400, 500):
        with table.case(f"another error, {status}"):
            body = json.dumps({"error": {"message": "The candidate wrote: 4 is even", "type": "other"}}).encode()
            with pytest.raises((RejectedError, ReplyError)):
                parse_reply(Reply("http://judge", status, {}, body), None)


@pytest.mark.parametrize(("value", "seconds"), [("1.5", 1.5), ("3", 3.0), ("0.25", 0.25), ("soon", 0.0), ("-1", 0.0)])
def test_retry_after(value: str, seconds: float) -> None:
    """`Retry-After` may have a fraction."""
    error = to_error(Reply("http://judge", 429, {"Retry-After": value}, b""))
    assert isinstance(error, OverloadError) and error.retry_after == seconds


def test_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge of a provider in `docs/judge.md` is valid."""
    (tmp_path / "paid.toml").write_text(block("docs/judge.md", "toml", "# paid.toml"))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "paid.toml"))
    judge = route_table(Settings.from_env()).judges["claude"]
    assert judge.options == {"omit": ["top_p", "chat_template_kwargs"]}


def assert_scores(case: Json, scores: list[Score]) -> None:
    """Compare status, value and reason of all scores."""
    shown = f"{scores[0].status} {scores[0].value}: {scores[0].reason}"
    assert {case["status"]} == {one.status for one in scores}, shown
    if case["status"] != "fallback":
        assert all(
            one.value == pytest.approx(case["value"]) if case["value"] is not None else one.value is None
            for one in scores
        ), shown
    for words in (case.get("reason", ""), case.get("reason2", "")):
        assert all(words in one.reason for one in scores), shown


def assert_sent(case: Json, provider: Provider) -> None:
    """Compare the last request to what the case says about it."""
    last, after = provider.bodies[-1] if provider.bodies else {}, case.get("then", {})
    assert len(provider.bodies) <= case.get("requests", 1000)
    assert not set(case.get("left_out", ())) & set(last), sorted(last)
    for name, value in {**case.get("sent", {}), **after.get("sent", {})}.items():
        assert value == last.get(name), f"{name}: {last.get(name)}"
    if "image" in case:
        assert case["image"] in json.dumps(last["messages"])
