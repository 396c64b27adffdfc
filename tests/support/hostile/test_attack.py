"""What every answer to a hostile request must be, and that a request is the same for the same seed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hostile.attack import Attack, Reply, complaint, unclear
from tests.support.hostile.kinds import KINDS, make

WHOLE = Attack("some", (), neighbours=(0, 2), scored=True)
BROKEN = Attack("some", (), broken=True)


def reply(status: int, body: Any, **headers: str) -> Reply:
    """An answer in JSON."""
    return Reply(status, headers, json.dumps(body).encode())


def scores(*values: float | None) -> dict[str, Any]:
    """The body of an answer with these values."""
    return {"scores": [{"value": value} for value in values]}


@pytest.mark.parametrize(
    ("attack", "answer", "expected"),
    [
        (WHOLE, reply(200, scores(1.0, None, 1.0)), ""),
        (WHOLE, reply(200, {"rewards": [1.0, 0.0, 1.0]}), ""),
        (WHOLE, reply(200, scores(1.0, 1.0, 0.0)), "[2]"),
        (WHOLE, reply(200, scores(1.0)), "[2]"),
        (WHOLE, reply(400, {"error": "deep", "field": "body"}), "whole batch"),
        (WHOLE, reply(503, {"error": "busy", "field": None}, **{"retry-after": "1"}), ""),
        (WHOLE, reply(503, {"error": "busy", "field": None}), "Retry-After"),
        (WHOLE, reply(500, {"error": "oh"}), "status 500"),
        (WHOLE, reply(200, "Traceback (most recent call last)"), "traceback"),
        (WHOLE, None, "no answer"),
        (BROKEN, None, ""),
        (BROKEN, reply(502, ""), "status 502"),
    ],
)
def test_complaint(attack: Attack, answer: Reply | None, expected: str) -> None:
    """An answer that harms is told from one that does not."""
    found = complaint(attack, answer)

    assert expected in found and bool(expected) == bool(found)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply(400, {"error": "deep", "field": "body"}), ""),
        (reply(404, {"error": "no such path", "field": None}), ""),
        (reply(400, {"error": "deep", "field": None}), "no field"),
        (reply(413, {"error": "long"}), "no JSON"),
        (Reply(400, {}, b"<html>"), "no JSON"),
    ],
)
def test_unclear(answer: Reply, expected: str) -> None:
    """A refusal that does not say what is to blame is told from one that does."""
    assert expected in unclear(WHOLE, answer) and bool(expected) == bool(unclear(WHOLE, answer))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed(kind: str) -> None:
    """The same seed makes the same request, another one another."""
    assert make(kind, 1, 2) == make(kind, 1, 2)
    assert len({make(kind, seed, 2) for seed in range(20)}) > 1
