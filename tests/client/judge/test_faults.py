"""Judges that answer wrongly, refuse, hang or die: a failure with a reason, never a score, never an exception."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from rewardstack import Score, compute_score, errors, score
from rewardstack.errors import ScoringError, SettingsError
from rewardstack.scorers.judge import calls
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.plan import Plan
from rewardstack.transport import timing
from tests.client.judge.conftest import FAKE_JUDGE, JUDGE, asked, forget, sample
from tests.support.servers import FaultServer, free_port
from tests.support.snippets import assert_shown, block
from tests.support.table import Table
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

LINE = re.compile(
    r"llm_judge: (\d+) samples in [\d.]+ s, [\d.]+ a second; latency median \d+ ms, longest \d+ ms "
    r"\(median \d+ ms without the client's queue\); "
    r"(\d+) cached, (\d+) failed, (\d+) of them without a readable verdict"
)
REFUSAL = '{"choices": [{"message": {"content": null, "refusal": "I cannot help with that."}}]}'
REPLIES: dict[str, tuple[dict[str, Any], str]] = {
    "empty body": ({"raw": ""}, "not a chat completion"),
    "not JSON": ({"raw": "busy"}, "not a chat completion"),
    "a page": ({"raw": "<html><title>No access</title><p>…</p></html>"}, "with a page (No access) instead of JSON"),
    "another JSON": ({"raw": '{"choices": []}'}, "not a chat completion"),
    "a choice that is none": ({"raw": '{"choices": ["REWARD: 1.000"]}'}, "not a chat completion"),
    "deeply nested": ({"raw": "[" * 100_000}, "not a chat completion"),
    "no message": ({"raw": '{"choices": [{"message": null}]}'}, "it is empty"),
    "empty content": ({"content": ""}, "it is empty"),
    "content of another type": ({"content": [{"type": "audio"}]}, "its content has no text part (audio)"),
    "a refusal": ({"raw": REFUSAL}, "the judge refused: 'I cannot help with that.'"),
    "filtered": ({"content": "", "finish": "content_filter"}, "filtered its reply (finish_reason content_filter)"),
    "filtered in its middle": ({"content": "REWARD: 0.", "finish": "content_filter"}, "filtered its reply"),
    "truncated, as Gemini says it": ({"content": "REWARD: 0.9", "finish": "MAX_TOKENS"}, "truncated at max_new_tokens"),
    "cut at once": ({"content": "", "finish": "length"}, "it was truncated at max_new_tokens"),
    "truncated": ({"content": "The candidate says", "finish": "length"}, "truncated at max_new_tokens"),
    "truncated in the number": ({"content": "REWARD: 0.9", "finish": "length"}, "truncated at max_new_tokens"),
    "no verdict": ({"content": "I like it."}, "no line `REWARD: <number>`"),
    "two verdicts": ({"content": "REWARD: 0.100 REWARD: 0.900"}, "more than one number"),
    "out of range": ({"content": "REWARD: 1.5"}, "not from 0 to 1"),
    "NaN": ({"content": "REWARD: NaN"}, "has no number"),
    "1e9": ({"content": "REWARD: 1e9"}, "1e9 is not from 0 to 1"),
    "nothing but reasoning": ({"content": "", "reasoning": "REWARD: 1.000"}, "leave enable_thinking out"),
    "reasoning that was cut": ({"content": "", "reasoning": "Hm", "finish": "length"}, "its reasoning was truncated"),
    "reasoning without an end": ({"content": "<think>REWARD: 1.000"}, "reasoning does not end"),
}


def test_replies(
    judge: FaultServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, table: Table
) -> None:
    """A reply without exactly one verdict is a failure; the log says why, in a line a warning."""
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    for name, (state, why) in REPLIES.items():
        with table.case(name):
            forget(judge, monkeypatch)
            assert_failed(judge, caplog, state, why)


def assert_failed(judge: FaultServer, caplog: pytest.LogCaptureFixture, state: dict[str, Any], why: str) -> None:
    """Score a sample whose reply has no verdict, and check the outcome and the log."""
    judge.set(**state)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        (one,) = score([sample()])
    assert ("failed", 0.0) == (one.status, one.value)
    assert why in one.reason
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any(why in line for line in warnings)
    without_verdict = "0" if why == "not a chat completion" or "page" in why else "1"
    assert ("1", "0", "1", without_verdict) == LINE.search(caplog.text).groups()  # type: ignore[union-attr]
    assert "Traceback" not in caplog.text and len(caplog.text.splitlines()) == len(caplog.records)


def test_the_document_shows_the_line(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """The line that `docs/judge.md` shows of a batch is the one in the log, but for its figures."""
    judge.set(usage={"prompt_tokens": 206_000, "completion_tokens": 3_090})
    with caplog.at_level(logging.INFO):
        score([sample("one"), sample("another")])
    assert_shown(block("docs/judge.md", "", "llm_judge: "), "\n".join(caplog.messages))


@pytest.mark.parametrize("options", [{}, {"verdict": "logprob", "prompt_template": "binary", "label_mass_floor": 0}])
def test_broken_off(judge: FaultServer, options: dict[str, Any]) -> None:
    """A reply that a judge being stopped broke off is asked for again, whatever it holds by then."""
    judge.set(content="REWARD: 0.9", chances={"0": 0.5, "1": 0.5}, finish="abort")
    judge.set(turns=[{}, {}, {"content": "REWARD: 0.125", "chances": {"0": 0.9, "1": 0.1}, "finish": "stop"}])
    (one,) = score([sample(**options)])
    assert ("ok", True) == (one.status, one.value is not None and one.value < 0.2)


def test_being_stopped(judge: FaultServer) -> None:
    """A judge that refuses because it is being stopped is asked again, until another one answers."""
    judge.set(status=500, error={"message": "cannot schedule new futures after shutdown", "code": 500})
    judge.set(turns=[{}, {}, {"status": 200}])
    assert "ok" == score([sample()])[0].status
    assert 3 == len(asked(judge))


def test_asked_once_more(judge: FaultServer) -> None:
    """A reply without a verdict is asked for once more, with a reminder of its form, and no more often."""
    judge.set(replies=["I like it."], content="REWARD: 0.5")
    assert 0.5 == score([sample()])[0].value
    first, second = (body["messages"][1]["content"] for body in asked(judge))
    assert second.startswith(first) and "could not be read" in second and "REWARD: <number from 0 to 1" in second
    judge.set(content="I like it.")
    assert "failed" == score([sample("another")])[0].status
    assert 4 == len(asked(judge))


def test_content_in_parts(judge: FaultServer) -> None:
    """A reply in parts is read by those that are text."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "REWARD: 1.000"}]}
    judge.set(content=[thought, {"type": "text", "text": "REWARD: 0.500"}])
    assert 0.5 == score([sample()])[0].value


def test_broken_off_for_good(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no reply is ever whole there is no verdict; a candidate that writes so changes nothing."""
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    (one,) = score([sample('"finish_reason":"abort"')])
    assert "ok" == one.status
    judge.set(content="REWARD: 0.9", finish="abort")
    (one,) = score([sample()])
    assert ("failed", 0.0) == (one.status, one.value)
    assert "the judge's reply was interrupted" in one.reason


@pytest.mark.parametrize("broken", ["/v1/models", "/version"])
@pytest.mark.parametrize("version", ["0.32.0", "0.8.5"])
def test_fault_while_discovery_is_refreshed(
    judge: FaultServer, monkeypatch: pytest.MonkeyPatch, broken: str, version: str
) -> None:
    """If the refresh fails, the last discovery stays: the judge's requests and its verdicts' keys are the same."""
    judge.set(version=version)
    before = sample(f"before {version} {broken}", temperature=0)  # no other test of this process has it in the cache
    score([before])
    monkeypatch.setattr("rewardstack.transport.timing.VALID_FOR", -1.0)
    judge.set(broken=broken)
    score([sample(f"after {version} {broken}", temperature=0)])
    sent = [body for body in asked(judge) if f" {version} {broken}" in body["messages"][-1]["content"]]
    first, second = ({**body, "messages": body["messages"][0], "headers": None} for body in sent)
    assert first == second
    assert score([before])[0].cached


def reply_with(logprobs: Any) -> str:
    """A reply with these probabilities."""
    return json.dumps({"choices": [{"message": {"content": "9"}, "logprobs": logprobs, "finish_reason": "length"}]})


GIVEN = {"content": [{"token": "9", "logprob": -0.1, "top_logprobs": [{"token": "9", "logprob": -0.1}]}]}
NONE_GIVEN = [None, {"content": None}, {"content": [{"token": "9", "logprob": -0.1, "top_logprobs": []}]}]


@pytest.mark.parametrize("logprobs", [{"content": []}, {"content": [None]}, {"content": [{"top_logprobs": [7]}]}])
def test_reply_with_odd_probabilities(judge: FaultServer, logprobs: Any) -> None:
    """One reply in which probabilities cannot be read is its sample's failure."""
    judge.set(owned_by="sglang", raw=reply_with(logprobs))
    (one,) = score([sample(verdict="logprob")])
    assert "failed" == one.status and "the probabilities of its first token are missing" in one.reason


@pytest.mark.parametrize("logprobs", NONE_GIVEN)
def test_reply_without_probabilities(judge: FaultServer, logprobs: Any) -> None:
    """A judge that has given probabilities before lacks them in one reply; one that never has gives none."""
    judge.set(owned_by="sglang", raw=reply_with(logprobs))
    with pytest.raises(errors.ConfigError, match="'logprob' needs token probabilities, but the judge returns none"):
        score([sample(verdict="logprob")])
    judge.set(raw=reply_with(GIVEN))
    assert "ok" == score([sample(verdict="logprob")])[0].status
    judge.set(raw=reply_with(logprobs))
    (one,) = score([sample("another", verdict="logprob")])
    assert "failed" == one.status and "has no token probabilities" in one.reason


def test_raise(judge: FaultServer) -> None:
    """Only where the caller asks for it a failure is an exception."""
    judge.set(content="")
    assert 0.0 == compute_score(JUDGE, "a", "b", {})
    with pytest.raises(ScoringError, match="it is empty"):
        compute_score(JUDGE, "a", "b", {}, on_error="raise")


def test_one_line_a_batch(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A batch has one line with throughput, latency and failed readings, and one warning, however much fails."""
    judge.set(replies=["REWARD: 0.5"] * 40, content="I cannot say.")
    with caplog.at_level(logging.INFO):
        score([sample(f"s{at}") for at in range(100)])
    found = [LINE.search(record.getMessage()) for record in caplog.records if record.levelno == logging.INFO]
    assert [("100", "0", "60", "60")] == [line.groups() for line in found if line]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "60 of 100 samples failed" in warning


def test_latencies_with_and_without_the_queue(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A sample's latency counts from the call, with the time in the queue; the log shows the time without it, too."""
    judge.set(content="REWARD: 0.5", delay=0.2)
    with caplog.at_level(logging.INFO):
        scores = score([sample(f"s{at}", batch_size=1) for at in range(4)])
    times = re.search(r"longest (\d+) ms \(median (\d+) ms without", caplog.text)

    assert max(one.latency_ms for one in scores) >= 4 * 200
    assert times and int(times[1]) >= 2 * int(times[2]) >= 2 * 200


def test_candidates_are_not_logged(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """Neither texts nor keys stand in the log, whatever fails."""
    judge.set(status=400, error={"error": "no"})
    with caplog.at_level(logging.DEBUG):
        score([sample("private candidate", "private reference", api_key="private key")])
    assert "private" not in caplog.text


def test_wrong_key(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that the judge refuses fails its samples, whosever it is; the reason says whose, and what to do."""
    judge.set(status=401)
    monkeypatch.setenv("LLM_JUDGE_SERVER_API_KEY", "private-wrong-key")
    alias = judge.url.replace("127.0.0.1", "localhost")
    scores = score(
        [sample(), sample(api_key="mine"), sample(server_url=alias, api_key="mine"), sample(server_url=alias)]
    )
    assert ["failed"] * 4 == [one.status for one in scores]
    own, *others = [one.reason for one in scores]
    assert own.startswith(judge.url) and "key in LLM_JUDGE_SERVER_API_KEY; set it to one" in own
    assert ["extra_info.api_key" in reason for reason in others] == [True] * 3
    assert "no key was sent" in others[2] and "private-wrong-key" not in str(scores)
    with pytest.raises(ScoringError, match="LLM_JUDGE_SERVER_API_KEY"):
        score([sample()], on_error="raise")


def test_no_server() -> None:
    """Without a judge the variable is named, and how to have one."""
    with pytest.raises(SettingsError, match=r"^LLM_JUDGE_SERVER_URL is not set; start a judge with `make up`"):
        score([sample()])


def test_refusals_are_waited_out(judge: FaultServer) -> None:
    """A judge that refuses for now is asked again until it takes the sample."""
    score([sample("warm")])
    judge.set(status=503, turns=[{}] * 51 + [{"status": 200}])
    assert {"ok"} == statuses(score([sample(f"s{at}") for at in range(50)]))


def statuses(scores: list[Score]) -> set[str]:
    """The different statuses, with the reasons of those that are not ok."""
    return {one.status if one.status == "ok" else f"{one.status}: {one.reason}" for one in scores}


@contextmanager
def two_judges(monkeypatch: pytest.MonkeyPatch, delay: float) -> Iterator[tuple[FaultServer, FaultServer]]:
    """Two replicas of one judge; one that works is not taken for one that hangs, however busy the machine is."""
    monkeypatch.setattr(timing, "MIN_STUCK", 8.0)
    monkeypatch.setattr(timing, "HEALTH_TIMEOUT", 60.0)
    both = FaultServer(script=FAKE_JUDGE), FaultServer(script=FAKE_JUDGE)
    for one in both:
        one.set(delay=delay)
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", ",".join(one.url for one in both))
    try:
        yield both
    finally:
        for one in both:
            one.kill()


Fault = Callable[[FaultServer], None]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(FaultServer.kill, id="killed"),
        pytest.param(FaultServer.freeze, id="frozen", marks=pytest.mark.nightly),
    ],
)
def test_one_of_two_replicas(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """With 200 samples in flight one of two replicas dies or freezes: all are scored in time, and few of them twice."""
    with two_judges(monkeypatch, 1.0) as (first, second), ThreadPoolExecutor(1) as thread:
        batch = [sample(f"one of two {fault.__name__} {at}") for at in range(200)]
        scoring = thread.submit(score, batch)
        eventually(lambda: second.stats()["requests"] >= 50)
        fault(second)
        scores = scoring.result()
        assert {"ok"} == statuses(scores)
        answered = first.stats()["answered"]
        assert sum(answered.values()) - len(answered) <= timing.RETRY_RESERVE + timing.RETRY_SHARE * len(scores)


def test_one_dies_then_the_other_freezes_and_thaws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead replica left undone, one that hangs for a while still does: an outage is no score."""
    with two_judges(monkeypatch, 0.5) as (first, second):
        score([sample("warm, then an outage")])
        second.kill()
        first.freeze()
        timer = threading.Timer(2, first.thaw)
        timer.start()
        assert {"ok"} == statuses(score([sample(f"outage {at}") for at in range(50)]))
        timer.join()


def test_both_gone_and_back(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With nobody there a batch fails in time, with one warning that names each server; later it is scored."""
    ports = free_port(), free_port()
    monkeypatch.setattr(timing, "MIN_STUCK", 60.0)
    monkeypatch.setattr(timing, "LOG_AFTER", 3600.0)
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", ",".join(f"http://127.0.0.1:{port}" for port in ports))
    monkeypatch.setenv("LLM_JUDGE_SERVER_REFUSED_TIMEOUT", "1")  # expires: nobody listens
    batch = [sample(f"gone {at}") for at in range(200)]
    with caplog.at_level(logging.WARNING):
        scores = score(batch)
    assert {("failed", 0.0)} == {(one.status, one.value) for one in scores}
    assert 1 == sum("200 of 200 samples failed" in record.getMessage() for record in caplog.records)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert [2, 1, 1] == [
        warning.count(words) for words in ("(is the server running?)", f":{ports[0]}/", f":{ports[1]}/")
    ]
    back = FaultServer(port=ports[0], script=FAKE_JUDGE)
    try:
        eventually(lambda: {"ok"} == statuses(score([sample("back")])))
        assert {"ok"} == statuses(score(batch))
        assert 201 <= len(asked(back)) <= 201 * (1 + timing.RETRY_SHARE) + timing.RETRY_RESERVE
    finally:
        back.kill()


def test_replica_that_hangs_behind_a_gateway(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that a gateway gave to a replica that hangs are sent once more, long before their time is over."""
    assert {"ok"} == statuses(score([sample(f"behind a gateway {at}") for at in range(39)]))
    monkeypatch.setattr(timing, "MIN_STUCK", 4.0)  # expires
    judge.set(stuck=20)
    assert {"ok"} == statuses(score([sample(f"stuck behind a gateway {at}", timeout=3600) for at in range(21)]))
    assert 80 == len(asked(judge))


@pytest.mark.parametrize("is_gateway", [False, True])
def test_slow_judge_is_not_asked_twice(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, is_gateway: bool) -> None:
    """A judge that takes long for everything, or a little longer for some, is sent nothing twice."""
    monkeypatch.setattr(timing, "MIN_STUCK", 0.8)  # expires, unless the usual latency counts
    monkeypatch.setattr(timing, "STUCK_FACTOR", 20.0)
    monkeypatch.setattr(timing, "FIRST_STUCK", 60.0)
    judge.set(delay=2.5, is_gateway=is_gateway)
    assert {"ok"} == statuses(score([sample(f"slow {at}") for at in range(20)]))
    judge.set(delays=[0.6] * 10 + [1.04] * 10)
    assert {"ok"} == statuses(score([sample(f"slower {at}") for at in range(20)]))
    assert 40 == len(asked(judge))


def test_a_much_slower_judge_is_asked_ever_more_rarely(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that takes far longer than all before is sent again after twice, four and eight times as long."""
    monkeypatch.setattr(timing, "MIN_STUCK", 0.2)  # expires
    monkeypatch.setattr(timing, "STUCK_FACTOR", 0.0)  # else a pause of this machine counts as the usual latency
    judge.set(is_gateway=True)
    assert {"ok"} == statuses(score([sample("quick")]))
    judge.set(delay=3.0, together=2)
    assert {"ok"} == statuses(score([sample("much slower")]))
    assert 2 <= len(asked(judge)) - 1 <= 6


def test_request_that_nobody_waits_for_any_more(judge: FaultServer) -> None:
    """A request is dropped with its sample: the same sample sends it again later."""
    score([sample("warm")])
    judge.set(delay=3600)
    assert "failed" == score([sample("the same", temperature=0, timeout=0.5)])[0].status  # expires
    judge.set(delay=0)
    assert "ok" == score([sample("the same", temperature=0)])[0].status


def test_waiting_for_a_turn_at_nobody(judge: FaultServer) -> None:
    """Where nobody answers, those that wait for their turn fail with those that have it, not one after the other."""
    score([sample("warm")])
    judge.set(delay=3600)
    scores = score([sample(f"in vain {at}", batch_size=1, timeout=1.0) for at in range(6)])  # expires
    assert {"failed"} == {one.status for one in scores}
    assert len(asked(judge)) <= 3


def test_server_of_a_sample_that_is_gone(judge: FaultServer) -> None:
    """A sample that names a dead server fails alone; the samples of other servers are scored."""
    dead = f"http://127.0.0.1:{free_port()}"
    gone: dict[str, Any] = {"server_url": dead, "timeout": 0.5}  # expires
    mixed = [sample(f"s{at}", **(gone if at % 2 else {})) for at in range(40)]
    scores = score(mixed)
    assert {"failed"} == {one.status for one in scores[1::2]}
    assert {"ok"} == {one.status for one in scores[::2]}


def test_identical_samples(judge: FaultServer) -> None:
    """Identical deterministic samples in flight are one request; stochastic ones and votes are one each."""
    judge.set(delay=0.2)
    score([sample("same", temperature=0)] * 5)
    assert 1 == len(asked(judge))
    score([sample("same")] * 5)
    assert 6 == len(asked(judge))
    score([sample("same", num_samples=2, seed=1)] * 5)
    assert 16 == len(asked(judge))
    assert json.dumps(asked(judge)[0]["messages"]) == json.dumps(asked(judge)[1]["messages"])


def trials(judge: FaultServer) -> list[dict[str, Any]]:
    """The requests by which was found out what the judge takes."""
    return [body for body in asked(judge) if body["messages"][-1]["content"] == calls.TRIAL_MESSAGE]


@pytest.fixture
def brief_trials(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the judge an unknown one that answers no trial, for which a sample waits briefly; list the trials."""
    monkeypatch.setattr(calls, "TRIAL_SHARE", 0.005)  # of a minute
    judge.set(owned_by="me", silent_on=calls.TRIAL_MESSAGE)
    begun, real = [], calls.Calls._ask

    def ask(self: calls.Calls, plan: Plan, model: Model, user: str, *arguments: Any, **options: Any) -> Any:
        begun.extend([user] * (user == calls.TRIAL_MESSAGE))
        return real(self, plan, model, user, *arguments, **options)

    monkeypatch.setattr(calls.Calls, "_ask", ask)
    return begun


def test_a_judge_that_is_tried_out(judge: FaultServer) -> None:
    """What an unknown judge takes is asked by a request for a short reply."""
    judge.set(owned_by="me")
    assert "ok" == score([sample()])[0].status
    assert [16] == [body["max_tokens"] for body in trials(judge)]
    assert 512 == asked(judge)[-1]["max_tokens"]


def test_a_judge_that_answers_no_trial(judge: FaultServer, brief_trials: list[str]) -> None:
    """What an unknown judge takes is asked briefly, and leaves samples most of their time."""
    assert "ok" == score([sample()])[0].status
    assert 1 == len(brief_trials)
    assert 512 == asked(judge)[-1]["max_tokens"]


@pytest.mark.parametrize(("renewal", "expected"), [(3600.0, 1), (0.0, 2)])
def test_a_silent_judge_is_tried_out_again(
    judge: FaultServer, monkeypatch: pytest.MonkeyPatch, brief_trials: list[str], renewal: float, expected: int
) -> None:
    """Where no answer came, what an unknown judge takes is asked again after a while, and not at once."""
    monkeypatch.setattr(timing, "RENEWAL", renewal)
    monkeypatch.setenv("REWARDSTACK_MAX_RETRIES", "0")
    judge.set(status=500)
    for text in ("one", "two"):
        assert "failed" == score([sample(text, cache_enabled=False)])[0].status
    assert expected == len(brief_trials)
