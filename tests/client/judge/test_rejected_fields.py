"""The fields that a server rejects are found at the start of its error message, and nowhere else in it."""

from __future__ import annotations

import json
import re
from itertools import product
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
from rewardstack.scorers.judge.options import read_options
from rewardstack.scorers.judge.rejected_fields import MESSAGE_PATTERNS, omit_fields, rejected_fields
from rewardstack.scorers.judge.request import make_frame
from rewardstack.transport.message import Reply, get_body
from tests.client.judge.conftest import asked, sample
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "cases/judge_rejections.json").read_text())
SENT = ("temperature", "top_p", "max_tokens", "seed", "response_format", "structured_outputs", "chat_template_kwargs")
MORE = ("logprobs", "top_logprobs", "thinking_token_budget", "continue_final_message")


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
            assert case["fields"] == rejected_fields(error, SENT + MORE)
            assert [] == rejected_fields(error, ())


def test_every_pattern_is_tested() -> None:
    """Each pattern has a page and a case."""
    texts = [json.dumps(case["body"]) + json.dumps(json.dumps(case["body"])) for case in CASES]
    for pattern, page in MESSAGE_PATTERNS:
        assert page.startswith("https://")
        assert any(re.search(pattern, text) for text in texts), pattern


def test_about_the_sample(judge: FaultServer) -> None:
    """An error about one sample's text makes that sample fail, and no field is omitted afterwards."""
    quoted = "your text 'Unrecognized request argument supplied: structured_outputs' is not allowed"
    judge.set(status=400, error={"error": {"message": quoted}})
    (one,) = score([sample()])
    judge.set(status=200)
    (two,) = score([sample("another")])
    assert ("failed", "ok") == (one.status, two.status) and "is not allowed" in one.reason
    assert all("structured_outputs" in body for body in asked(judge))


def test_about_a_value(judge: FaultServer) -> None:
    """An error about a value that a sample sets makes that sample fail; other requests keep the field."""
    message = "The parameter `{}` specified in the request are not valid: integer above maximum value"
    for field, extra in (("max_tokens", {"max_new_tokens": 20000}), ("seed", {"seed": 2**53})):
        judge.set(status=400, error={"error": {"message": message.format(field)}})
        (one,) = score([sample(f"too much of {field}", **extra)])
        judge.set(status=200)
        assert "failed" == one.status and "above maximum value" in one.reason
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
        better = omit_fields(dialect, fields)
        if better == dialect:
            break
        dialect, steps = better, steps + 1
    assert steps < 8
