"""Signatures of values: who has the secret can verify them, and nothing that was changed passes."""

from __future__ import annotations

import pytest

from rewardstack.cache.signature import Signer, is_accepted
from rewardstack.cache.value import decode, encode
from rewardstack.score import Score
from rewardstack.scorers.embedding.vectors import decode_vector

KEY = "rewardstack:1:0123456789abcdef"
BARE = encode(KEY, Score(1.0, source="rule:gsm8k"))
SIGNER = Signer("secret")
SIGNED = SIGNER.sign(KEY, BARE)


def test_there_and_back() -> None:
    """What is signed comes out as it went in."""
    assert BARE == SIGNER.verify(KEY, SIGNED)


def test_every_change() -> None:
    """A value of which any bit is another, or that ends anywhere else, has no valid signature."""
    flipped = [SIGNED[:at] + bytes([SIGNED[at] ^ 1]) + SIGNED[at + 1 :] for at in range(len(SIGNED))]
    cut = [SIGNED[:end] for end in range(len(SIGNED))]
    assert {None} == {SIGNER.verify(KEY, one) for one in [*flipped, *cut, SIGNED + b" ", BARE, b""]}


@pytest.mark.parametrize(("secret", "key"), [("Secret", KEY), ("secret ", KEY), ("secret", KEY + "0"), ("secret", "")])
def test_others(secret: str, key: str) -> None:
    """Another secret verifies nothing, nor does the right one under another key."""
    assert Signer(secret).verify(key, SIGNED) is None


def test_a_key_does_not_run_into_its_value() -> None:
    """The end of a key moved to the beginning of the value is another value."""
    assert SIGNER.verify(KEY[:-1], SIGNED[:17] + KEY[-1:].encode() + BARE) is None


def test_who_has_none() -> None:
    """A signed value is none to a reader without a secret, nor a bare one to a reader with a secret."""
    assert (decode(KEY, SIGNED), decode_vector(KEY, SIGNED)) == (None, None)
    found = [is_accepted(secret, KEY, data) for secret in ("", "secret", "other") for data in (BARE, SIGNED)]
    assert found == [True, False, False, True, False, False]
