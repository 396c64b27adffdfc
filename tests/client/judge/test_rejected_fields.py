"""The fields that a server rejects are found in its error message, but not where it quotes the sample."""

from __future__ import annotations

import json
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from rewardstack import score
from rewardstack.errors import RejectedError
from rewardstack.scorers.judge.dialect import (
    OLD_VLLM,
    OWNERS,
    TGI,
    UNKNOWN,
    VLLM,
    Dialect,
    detect_dialect,
    parse_vllm_version,
)
from rewardstack.scorers.judge.options import OMITTABLE, read_options
from rewardstack.scorers.judge.rejected_fields import omit_fields, rejected_fields
from rewardstack.scorers.judge.request import make_frame
from rewardstack.transport.message import Reply, get_body
from tests.client.judge.conftest import asked, sample
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "cases/judge_rejections.json").read_text())
SENT: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 0.8,
    "max_tokens": 512,
    "seed": 1,
    "response_format": {"type": "json_schema"},
    "structured_outputs": {"regex": "a"},
    "chat_template_kwargs": {"enable_thinking": False},
    "logprobs": True,
    "top_logprobs": 20,
    "thinking_token_budget": 9,
    "continue_final_message": True,
}


def rejection(status: int, body: Any) -> RejectedError:
    """The error of a reply with this status and body."""
    with pytest.raises(RejectedError) as raised:
        get_body(Reply("http://judge:8000/v1/chat/completions", status, {}, json.dumps(body).encode()))
    return raised.value


def test_fields(table: Table) -> None:
    """The fields that a server rejects are found in its message; a message about the sample has none."""
    for case in CASES:
        with table.case(str(case["name"])):
            error = rejection(case.get("status", 400), case["body"])
            other = "response_format" if "structured_outputs" in case["fields"] else "structured_outputs"
            sent = {name: value for name, value in SENT.items() if name != other}
            found = rejected_fields(error, sent, case.get("texts", ()))
            assert set(case["fields"]) == set(found)
            assert case.get("values", {}) == {name: value for name, value in found.items() if value is not None}
            assert {} == rejected_fields(error, {})


def test_order() -> None:
    """Two processes that learn the same rejections in different orders send the same requests in the end."""
    options = read_options({"seed": 1})
    learnt = [("top_p", None), ("temperature", 1), ("response_format", None), ("max_tokens", None), ("seed", None)]
    bodies = set()
    for order in permutations(learnt):
        dialect = UNKNOWN
        for field, value in order:
            dialect = omit_fields(dialect, {field: value})
        bodies.add(make_frame(options, "m", dialect=dialect).body("It is 42."))
    assert 1 == len(bodies)
    assert {"model", "messages", "temperature", "max_completion_tokens", "chat_template_kwargs", "stream"} == set(
        json.loads(bodies.pop())
    )


def test_omitted_names(table: Table) -> None:
    """Each field that a configuration may omit is left out of every request."""
    for field in OMITTABLE:
        for name, dialect in DIALECTS.items():
            with table.case(f"{field}, {name}"):
                options = read_options({"seed": 1, "omit": [field]})
                frame = make_frame(options, "m", dialect=omit_fields(dialect, dict.fromkeys(options.omit)))
                assert field not in json.loads(frame.body("It is 42."))


def test_about_the_sample(judge: FaultServer) -> None:
    """An error that quotes a sample's text makes that sample fail, and no field is omitted afterwards."""
    text = "Unrecognized request argument supplied: structured_outputs"
    judge.set(status=400, error={"error": {"message": f"your text '{text}' is not allowed"}})
    (one,) = score([sample(text)])
    judge.set(status=200)
    (two,) = score([sample("another")])
    assert ("failed", "ok") == (one.status, two.status) and "is not allowed" in one.reason
    assert all("structured_outputs" in body for body in asked(judge))


def test_about_a_value(judge: FaultServer) -> None:
    """An error about a value that a sample sets makes that sample unscored; other requests keep the field."""
    message = "The parameter `{}` specified in the request are not valid: integer above maximum value"
    for field, extra in (("max_tokens", {"max_new_tokens": 20000}), ("seed", {"seed": 2**53})):
        judge.set(status=400, error={"error": {"message": message.format(field)}})
        (one,) = score([sample(f"too much of {field}", **extra)])
        judge.set(status=200)
        ((option, value),) = extra.items()
        assert "unscored" == one.status and "above maximum value" in one.reason
        assert f"extra_info.{option}: the judge rejects the value {value}" in one.reason
    assert "ok" == score([sample("another", seed=1)])[0].status
    assert (512, 1) == (asked(judge)[-1].get("max_tokens"), asked(judge)[-1].get("seed"))


@pytest.mark.parametrize(
    ("reply", "dialect"),
    [
        *(({"data": [{"id": "m", "owned_by": owner}]}, dialect) for owner, dialect in OWNERS.items()),
        ({"data": [{"id": "m", "owned_by": "m"}]}, TGI),
        ({"data": [{"id": "gpt", "owned_by": "openai"}]}, UNKNOWN),
        ({"data": [{"id": "m"}]}, UNKNOWN),
        ({"data": []}, UNKNOWN),
        ({"data": {}}, UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_dialect_of(reply: Any, dialect: Dialect) -> None:
    """A server's dialect is known by the owner of its models; one that tells none is unknown."""
    assert dialect == detect_dialect(json.dumps(reply).encode())


@pytest.mark.parametrize(
    ("version", "dialect"),
    [("0.33.0", VLLM), ("0.11.0", VLLM), ("1.0.0", VLLM), ("dev", VLLM), (None, VLLM), ("0.10.2", OLD_VLLM)],
)
def test_vllm_of(version: str | None, dialect: Dialect) -> None:
    """A vLLM older than `structured_outputs` has a dialect of its own; one that tells no version is new."""
    assert dialect == parse_vllm_version(json.dumps({"version": version}).encode())


DIALECTS = {**OWNERS, "tgi": TGI, "unknown": UNKNOWN, "old vllm": OLD_VLLM}
EXTRAS: list[dict[str, Any]] = [
    *({"seed": 1}, {"enable_thinking": True}, {"verdict": "logprob"}, {"prompt_template": "points"}),
]


def test_corrections_end(table: Table) -> None:
    """However many fields a server rejects, retries end: each rejection omits a field, or is final."""
    for (name, dialect), extra in product(DIALECTS.items(), EXTRAS):
        with table.case(f"{name} {extra}"):
            assert_corrections_end(dialect, extra)


def assert_corrections_end(dialect: Dialect, extra: dict[str, Any]) -> None:
    """Reject every field that a dialect sends until nothing changes."""
    options, steps = read_options(extra), 0
    while steps < 20:
        fields = make_frame(options, "m", label_ids=(1, 2), dialect=dialect).fields
        better = omit_fields(dialect, dict.fromkeys(fields))
        if better == dialect:
            break
        dialect, steps = better, steps + 1
    assert steps < 8
