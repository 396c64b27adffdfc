"""Seals on values: who has the secret takes them off, and nothing that was changed passes."""

from __future__ import annotations

import pytest

from rewardstack.cache.seal import Seal, fits
from rewardstack.cache.value import decode, encode
from rewardstack.score import Score
from rewardstack.scorers.embedding.vectors import decode_vector

KEY = "rewardstack:1:0123456789abcdef"
BARE = encode(KEY, Score(1.0, source="rule:gsm8k"))
SEAL = Seal("secret")
SEALED = SEAL.sign(KEY, BARE)


def test_there_and_back() -> None:
    """What is sealed comes out as it went in."""
    assert BARE == SEAL.verify(KEY, SEALED)


def test_every_change() -> None:
    """A value of which any bit is another, or that ends anywhere else, has no right seal."""
    flipped = [SEALED[:at] + bytes([SEALED[at] ^ 1]) + SEALED[at + 1 :] for at in range(len(SEALED))]
    cut = [SEALED[:end] for end in range(len(SEALED))]
    assert {None} == {SEAL.verify(KEY, one) for one in [*flipped, *cut, SEALED + b" ", BARE, b""]}


@pytest.mark.parametrize(("secret", "key"), [("Secret", KEY), ("secret ", KEY), ("secret", KEY + "0"), ("secret", "")])
def test_others(secret: str, key: str) -> None:
    """Another secret takes the seal off nothing, nor does the right one under another key."""
    assert Seal(secret).verify(key, SEALED) is None


def test_a_key_does_not_run_into_its_value() -> None:
    """The end of a key moved to the beginning of the value is another value."""
    assert SEAL.verify(KEY[:-1], SEALED[:17] + KEY[-1:].encode() + BARE) is None


def test_who_has_none() -> None:
    """A sealed value is none to a reader without a secret, nor a bare one to a reader with a secret."""
    assert (decode(KEY, SEALED), decode_vector(KEY, SEALED)) == (None, None)
    found = [fits(secret, KEY, data) for secret in ("", "secret", "other") for data in (BARE, SEALED)]
    assert found == [True, False, False, True, False, False]
