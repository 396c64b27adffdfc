"""A score keeps all its fields from the server through cache and stages to the caller."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from rewardstack.cache.value import decode, encode
from rewardstack.cause import Cause
from rewardstack.core.wire import read_scores, score_record
from rewardstack.pipeline.stages import copy_for_caller
from rewardstack.score import Score, Usage

USAGE = Usage(2, 30, 4, 1)
MASS, PARTS = 0.75, {"format": 1.0}
FULL = Score(
    0.5,
    "ok",
    "why",
    "llm_judge",
    True,
    2.0,
    MASS,
    PARTS,
    agreement=0.8,
    field="x",
    usage=USAGE,
    volatile=True,
    cause=Cause.TIMEOUT,
)
UNCACHED = ("latency_ms", "field", "usage", "volatile", "cause")
"""The fields of scores that are not cached, and those that differ between callers."""
NAMES = [field.name for field in fields(Score)]


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_set(name: str) -> None:
    """The score that is sent round says something in every field, so that none is lost unseen."""
    assert getattr(FULL, name) != getattr(Score(None), name) or name == "status"


@pytest.mark.parametrize("name", NAMES)
def test_copied(name: str) -> None:
    """The caller's copy is the same in all but the time."""
    assert getattr(copy_for_caller(replace(FULL), FULL.latency_ms, cached=True), name) == getattr(FULL, name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "latency_ms"])
def test_sent(name: str) -> None:
    """What a server answers is read whole; how long a call took is each side's own."""
    (read,) = read_scores([json.loads(json.dumps(score_record(FULL)))])
    assert getattr(read, name) == getattr(FULL, name)


def test_shared() -> None:
    """What several callers share was paid for once, and is told to the first of them alone."""
    shared = replace(FULL)
    assert [FULL.usage, None] == [copy_for_caller(shared, 1.0).usage for _ in range(2)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNCACHED])
def test_kept(name: str) -> None:
    """What the cache keeps is found whole, but for what it took: who reads it takes nothing. It keeps no score that
    blames a field, and none that another try may change."""
    kept = decode("a key of a score", encode("a key of a score", FULL))
    assert getattr(kept, name) == getattr(FULL, name)


@pytest.mark.parametrize("usage", [3, "3", {"requests": 1}, USAGE._asdict() | {"requests": 1e9}, [1, 2, 3, 4]])
def test_malformed_usage(usage: object) -> None:
    """A usage that is none is no score's, and refused as the whole reply is."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_scores([{**score_record(FULL), "usage": usage}])


def test_words() -> None:
    """A usage in words says what is not known, and shortens what is long."""
    assert "no requests to models" == Usage().summary
    assert "1 request, tokens unknown" == Usage(1, 0, 0, 1).summary
    assert "724 requests, 1.2 M prompt and 60 k completion tokens" == Usage(724, 1_200_000, 60_000).summary
    partly_known = Usage(3, 9_999, 2, 1)
    assert "3 requests, 9,999 prompt and 2 completion tokens (unknown for 1 of the requests)" == partly_known.summary
