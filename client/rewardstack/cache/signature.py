"""Signatures of cached values: with a secret, a value in Redis is valid only if it was signed under the same key.

An attacker with write access to Redis can then only delete values and restore earlier values of the same key. The
signature is keyed BLAKE2b (RFC 7693, section 2.9), a message authentication code that costs a third of HMAC-SHA-256.
"""

from __future__ import annotations

import hmac
from hashlib import blake2b

MARK = b"\x01"
"""First byte of a signed value. No unsigned value starts with this byte: an unsigned score is JSON, and an unsigned
vector starts with the last characters of its key."""
SIZE = 16
"""Size of a signature in bytes; a guess is valid with a probability of 2 to the power of -128."""
OVERHEAD = len(MARK) + SIZE
"""Number of bytes that signing adds to a value."""


class Signer:
    """Signs and verifies cached values.

    Args:
        secret: the secret that all readers and writers share.
    """

    def __init__(self, secret: str) -> None:
        # A BLAKE2b key has at most 64 bytes, the size of this digest.
        self._key = blake2b(secret.encode()).digest()

    def sign(self, key: str, data: bytes) -> bytes:
        """Return `data` with a signature for `key`."""
        return MARK + self._over(key, data) + data

    def verify(self, key: str, data: bytes) -> bytes | None:
        """Return `data` without its signature; None if the signature for `key` is missing or wrong."""
        bare = data[OVERHEAD:]
        genuine = data.startswith(MARK) and hmac.compare_digest(data[len(MARK) : OVERHEAD], self._over(key, bare))
        return bare if genuine else None

    def _over(self, key: str, data: bytes) -> bytes:
        name = key.encode()
        # Without the length, another key and other data could concatenate to the same bytes.
        return blake2b(len(name).to_bytes(8, "little") + name + data, key=self._key, digest_size=SIZE).digest()


def has_valid_signature(secret: str, key: str, data: bytes) -> bool:
    """Return whether `data` is signed as a reader with this secret expects for `key`.

    Args:
        secret: the reader's secret; empty if the reader expects unsigned values.
        key: the cache key.
        data: the bytes in Redis.
    """
    return Signer(secret).verify(key, data) is not None if secret else not data.startswith(MARK)
