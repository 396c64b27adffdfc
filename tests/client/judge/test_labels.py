"""`verdict: "logprob"`: the expected value over labels of one token each."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from rewardstack import compute_score, score
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge import plan
from rewardstack.scorers.judge.api import Api
from rewardstack.scorers.judge.conversation import ShownParts
from rewardstack.scorers.judge.dialect import LLAMA_CPP, OLD_VLLM, OLLAMA, SGLANG, TGI, UNKNOWN, VLLM, Dialect
from rewardstack.scorers.judge.labels import LabelTokens
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.options import Options, read_options
from rewardstack.scorers.judge.request import make_frame
from rewardstack.transport.discovery import MAX_SERVERS
from rewardstack.transport.message import Message
from tests.client.judge.conftest import JUDGE, asked, sample
from tests.support.servers import FaultServer

DIGITS = {"9": 0.6, "6": 0.2, "0": 0.1}


def test_expected_value(judge: FaultServer) -> None:
    """The verdict is the labels' mean value by their probabilities; their probability together is reported."""
    judge.set(chances=DIGITS)
    (one,) = score([sample(verdict="logprob")])
    assert pytest.approx((0.6 * 1 + 0.2 * 6 / 9) / 0.9, abs=1e-6) == one.value
    assert pytest.approx(0.9, abs=1e-6) == one.label_mass == one.details["label_mass"]


def test_request(judge: FaultServer) -> None:
    """One token is asked for, by the labels' ids, without a form that would hide how unlikely they are."""
    judge.set(chances=DIGITS)
    score([sample(verdict="logprob")])
    (body,) = asked(judge)
    assert (1, True, True) == (body["max_tokens"], body["logprobs"], body["return_tokens_as_token_ids"])
    assert 10 == len(set(body["logprob_token_ids"]))
    assert {"enable_thinking": False} == body["chat_template_kwargs"]
    assert "structured_outputs" not in body
    assert "one of these labels and nothing else: 0, 1, 2" in body["messages"][0]["content"]


@pytest.mark.parametrize("dialect", [VLLM, OLD_VLLM, SGLANG, LLAMA_CPP, OLLAMA, TGI, UNKNOWN])
def test_begun_reply(dialect: Dialect) -> None:
    """A reply that is to be a label is begun where the server's documents say that it is continued, and only there."""
    labelled = messages_of(read_options({"verdict": "logprob", "prompt_template": "binary"}), dialect)
    in_words = messages_of(read_options({}), dialect)
    begun = [{"role": "assistant", "content": "Either grade=0 or grade=1. Here grade="}]
    assert labelled[2:] == (begun if dialect in (VLLM, SGLANG) else [])
    assert ["system", "user"] == [message["role"] for message in in_words]


def messages_of(options: Options, dialect: Dialect) -> list[dict[str, str]]:
    """Those of a request, which continues the last of them if and only if that is the assistant's."""
    body = json.loads(make_frame(options, "small", dialect=dialect).body("Is it?"))
    continues = body.get("continue_final_message", False), not body.get("add_generation_prompt", True)
    assert {body["messages"][-1]["role"] == "assistant"} == set(continues)
    messages: list[dict[str, str]] = body["messages"]
    return messages


def test_begun_reply_is_in_the_key() -> None:
    """A verdict on a begun reply has another key than one without."""
    destination = Destination(("http://judge:8000",), "")
    asked_of = plan.Plan(destination, read_options({"verdict": "logprob"}), ShownParts("2+2?", "4"), ("4",))
    models = [Model("small", "small", dialect) for dialect in (VLLM, VLLM.omit("continue_final_message"))]
    with_begun, without = (plan.cache_key(asked_of, model, "", "") for model in models)
    assert with_begun is not None and without is not None and with_begun.text != without.text


def test_begun_reply_is_refused(judge: FaultServer) -> None:
    """A server whose chat template does not let a reply be begun is asked without, from the first sample on."""
    judge.set(chances=DIGITS, ignores=["continue_final_message"])
    for at in range(2):
        (one,) = score([sample(f"It is {at}.", verdict="logprob")])
        assert "ok" == one.status, one.reason
    assert [True, False, False] == ["continue_final_message" in body for body in asked(judge)]


def test_labels_of_servers_without_end() -> None:
    """Samples may name servers without end: the labels' tokens are kept of the last `MAX_SERVERS` of them."""
    asked: list[Destination] = []

    class Tokenizers:
        async def ask(self, destination: Destination, message: Message, _: SharedDeadline) -> Any:
            asked.append(destination)
            assert message.read is not None
            return message.read(b'{"tokens": [1]}')

    async def find(*servers: Destination) -> None:
        deadline = SharedDeadline(Deadline(60))
        for server in servers:
            await tokens.find(["A"], Model("m", "m"), server, deadline)

    tokens = LabelTokens(cast("Api", Tokenizers()))
    servers = [Destination((f"http://{number}",), "") for number in range(MAX_SERVERS + 1)]
    asyncio.run(find(*servers, servers[-1], servers[0]))
    assert asked == [*servers, servers[0]]


def test_labels_are_looked_up_once(judge: FaultServer) -> None:
    """The tokens of the labels are asked for once, however many samples there are."""
    judge.set(chances=DIGITS)
    for at in range(3):
        compute_score(JUDGE, f"s{at}", "r", {"verdict": "logprob"})
    assert 10 == judge.stats()["tokenized"]


def test_labels_of_a_custom_template(judge: FaultServer) -> None:
    """A custom template brings its labels and their values."""
    judge.set(chances={"good": 0.5, "bad": 0.5})
    own = "Is it good or bad? {CANDIDATE_SOLUTION}"
    (one,) = score([sample(verdict="logprob", prompt_template=own, labels={"good": 1.0, "bad": 0.2})])
    assert (pytest.approx(0.6), "ok") == (one.value, one.status)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({"very good": 1, "bad": 0}, "'very good' is 2 tokens for small; choose labels of one token"),
        ({"bad": 1, " bad": 0}, "' bad' is the same token as another label"),
    ],
)
def test_labels_that_are_no_labels(judge: FaultServer, labels: dict[str, float], says: str) -> None:
    """Labels of several tokens, or of the same one, leave the sample unscored."""
    (one,) = score([sample(verdict="logprob", labels=labels)])
    assert "unscored" == one.status and says in one.reason


def test_floor(judge: FaultServer) -> None:
    """Labels that are improbable together are no verdict; the floor can be set."""
    judge.set(chances={"9": 0.2})
    low, allowed = score([sample(verdict="logprob"), sample(verdict="logprob", label_mass_floor=0.1)])
    assert "failed" == low.status and "total probability of the labels is 0.2, expected 0.5 to 1" in low.reason
    assert ("ok", pytest.approx(0.2)) == (allowed.status, allowed.label_mass)


def test_tokenize_out_of_reach(judge: FaultServer) -> None:
    """A gateway that keeps /tokenize back is named as the cause, with the remedy."""
    judge.set(refuse="/tokenize")
    (one,) = score([sample(verdict="logprob")])
    assert "failed" == one.status and "needs POST /tokenize" in one.reason and "let /tokenize through" in one.reason


def test_server_that_ignores_the_ids(judge: FaultServer) -> None:
    """A server that does not know `logprob_token_ids` returns no verdict, and the sample fails."""
    judge.set(ignores=["logprob_token_ids"])
    (one,) = score([sample(verdict="logprob")])
    assert "failed" == one.status and "needs vLLM with `logprob_token_ids`" in one.reason
