"""Seals: with a secret, a value in Redis counts only where a holder of the secret wrote it, and under that very key.

Whoever else can write there can delete values and put back what stood under the same key before, and no more than that.
A seal is a keyed BLAKE2b (RFC 7693, section 2.9), a message authentication code as HMAC (RFC 2104) is, in a third of
the time of HMAC-SHA-256.
"""

from __future__ import annotations

import hmac
from hashlib import blake2b

MARK = b"\x01"
"""How a sealed value begins, and no other: those are JSON, or begin with their key's last characters."""
SIZE = 16
"""Bytes of a seal: one that is guessed fits with a probability of 2 to the power of -128."""
OVERHEAD = len(MARK) + SIZE
"""Bytes by which a sealed value is longer."""


class Seal:
    """Puts seals on values and takes them off.

    Args:
        secret: shared by all who read or write the values.
    """

    def __init__(self, secret: str) -> None:
        # BLAKE2b takes keys of up to 64 bytes.
        self._key = blake2b(secret.encode()).digest()

    def put_on(self, key: str, data: bytes) -> bytes:
        """`data` with the seal of its place under `key`."""
        return MARK + self._over(key, data) + data

    def take_off(self, key: str, data: bytes) -> bytes | None:
        """What is sealed in `data` for `key`; None where it has no seal, or not the right one."""
        bare = data[OVERHEAD:]
        genuine = data.startswith(MARK) and hmac.compare_digest(data[len(MARK) : OVERHEAD], self._over(key, bare))
        return bare if genuine else None

    def _over(self, key: str, data: bytes) -> bytes:
        name = key.encode()
        # With its length before it no other key and data give the same bytes.
        return blake2b(len(name).to_bytes(8, "little") + name + data, key=self._key, digest_size=SIZE).digest()


def fits(secret: str, key: str, data: bytes) -> bool:
    """Whether a reader with this secret, or with none where it is empty, can take `data` for a value under `key`."""
    return Seal(secret).take_off(key, data) is not None if secret else not data.startswith(MARK)
