"""Test the checks of replies, and that the same seed gives the same request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hostile.attack import Attack, Reply, complaint, unclear
from tests.support.hostile.kinds import KINDS, make

WHOLE = Attack("some", (), neighbours=(0, 2), scored=True)
BROKEN = Attack("some", (), broken=True)


def reply(status: int, body: Any, **headers: str) -> Reply:
    """Return a reply with a JSON body."""
    return Reply(status, headers, json.dumps(body).encode())


def scores(*values: float | None) -> dict[str, Any]:
    """Return the body of a reply with scores of these values."""
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
    """`complaint` finds what is wrong with a reply, and accepts right replies."""
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
    """`unclear` finds refusals that do not name the invalid field."""
    assert expected in unclear(WHOLE, answer) and bool(expected) == bool(unclear(WHOLE, answer))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed(kind: str) -> None:
    """The same seed gives the same request, and different seeds give different requests."""
    assert make(kind, 1, 2) == make(kind, 1, 2)
    assert len({make(kind, seed, 2) for seed in range(20)}) > 1
