"""How a score is written in the cache, and what is not taken for one when it is read back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rewardstack.cache.value import decode, encode
from rewardstack.score import Score
from tests.support.table import Table

KEY = "rewardstack:1:0123456789abcdef"
CHECK = "89abcdef"
SCORES = [
    Score(1.0, source="rule:gsm8k"),
    Score(0.0, reason="no answer of the form #### number", source="rule:gsm8k"),
    Score(-2.5, source="rule:mine"),
    Score(0.1 + 0.2, source="rule:mine"),
    Score(0.7, source="judge:m", label_mass=0.98),
    Score(1.5, source="rule:math_verifier", parts={"format": 0.5, "accuracy": 1.0}),
    Score(0.5, reason="ⅷ — “quoted” \\ \n", source="rule:ü", label_mass=0.0, parts={}),
]
MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "half a record": b'["89abcdef",1.0',
    "no JSON": b"OK",
    "no text": b"\xff\xfe\x00",
    "pickle": b"\x80\x04K\x01.",
    "null": b"null",
    "a number": b"1.0",
    "an object": b'{"value":1.0}',
    "an empty list": b"[]",
    "too deep": b"[" * 100_000,
    "too short": b'["89abcdef",1.0]',
    "too long": b'["89abcdef",1.0,"s","",null,null,null,null]',
    "another key's": b'["00000000",1.0,"s"]',
    "no key": b'[1.0,"s",""]',
    "value null": b'["89abcdef",null,"s"]',
    "value true": b'["89abcdef",true,"s"]',
    "value a string": b'["89abcdef","1.0","s"]',
    "value NaN": b'["89abcdef",NaN,"s"]',
    "value infinite": b'["89abcdef",-Infinity,"s"]',
    "value beyond a float": b'["89abcdef",1e999,"s"]',
    "value beyond an integer's float": b'["89abcdef",1' + b"0" * 400 + b',"s"]',
    "value beyond what Python reads": b'["89abcdef",1' + b"0" * 5000 + b',"s"]',
    "source null": b'["89abcdef",1.0,null]',
    "source a number": b'["89abcdef",1.0,7]',
    "reason a number": b'["89abcdef",1.0,"s",7]',
    "label mass a string": b'["89abcdef",1.0,"s","","0.9"]',
    "label mass NaN": b'["89abcdef",1.0,"s","",NaN]',
    "label mass above 1": b'["89abcdef",1.0,"s","",7.0]',
    "label mass below 0": b'["89abcdef",1.0,"s","",-0.1]',
    "agreement above 1": b'["89abcdef",1.0,"s","",null,null,1.5]',
    "agreement below 0": b'["89abcdef",1.0,"s","",null,null,-1]',
    "parts a list": b'["89abcdef",1.0,"s","",null,[1.0]]',
    "a part null": b'["89abcdef",1.0,"s","",null,{"format":null}]',
    "a part a list": b'["89abcdef",1.0,"s","",null,{"format":[]}]',
}


@pytest.mark.parametrize("score", SCORES, ids=lambda score: f"{score.value} {score.source}")
def test_round_trip(score: Score) -> None:
    """What is read back is what was written, marked as cached; its time is the reader's own."""
    expected = Score(**{**_fields(score), "cached": True, "latency_ms": 0.0})
    assert expected == decode(KEY, encode(KEY, score))


def _fields(score: Score) -> dict[str, Any]:
    return {name: getattr(score, name) for name in Score.__slots__}


def test_whole_numbers() -> None:
    """A value that another writer put down as a whole number is a float."""
    score = decode(KEY, json.dumps([CHECK, 1, "s"]).encode())
    assert score is not None
    assert (1.0, float) == (score.value, type(score.value))


def test_negative_zero() -> None:
    """A zero has no sign, as in scores that are not from the cache."""
    score = decode(KEY, b'["89abcdef",-0.0,"s","",-0.0,{"format":-0.0},-0.0]')
    assert score is not None and score.parts is not None
    for number in (score.value, score.label_mass, score.agreement, score.parts["format"]):
        assert number is not None and math.copysign(1, number) == 1


def test_malformed(table: Table) -> None:
    """What is no score of this key is no score at all, and raises nothing."""
    for name, data in MALFORMED.items():
        with table.case(name):
            assert decode(KEY, data) is None


def test_control_characters() -> None:
    """Control characters and those that reorder text come back escaped; lines and other scripts as they are."""
    text = "a\x1b[31m\r\x00\x9b\u202e\n\tü 大\u3000"
    score = decode(KEY, json.dumps([CHECK, 1, "s", text, None, {"\x1b[2J": 1.0}]).encode())
    assert score is not None
    assert score.reason == "a\\x1b[31m\\r\\x00\\x9b\\u202e\n\tü 大\u3000"
    assert score.parts == {"\\x1b[2J": 1.0}


def test_every_truncation() -> None:
    """A value cut off anywhere is no score."""
    data = encode(KEY, SCORES[5])
    assert [None] * len(data) == [decode(KEY, data[:end]) for end in range(len(data))]


def test_reply_for_another_key() -> None:
    """A value written under one key is not taken under another."""
    assert decode(KEY[:-1] + "0", encode(KEY, SCORES[0])) is None


def test_numbers_survive_exactly() -> None:
    """The bits of a float are the same after the journey."""
    score = decode(KEY, encode(KEY, Score(math.nextafter(0.5, 1.0), source="s")))
    assert score is not None
    assert math.nextafter(0.5, 1.0) == score.value
