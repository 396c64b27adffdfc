"""Generate requests whose body is cut off, sent slowly, or has a wrong length."""

from __future__ import annotations

import json
from random import Random

from tests.support.hostile.attack import Attack, Make, message
from tests.support.hostile.protocols import BODIES, SAMPLES

TARGETS = {**BODIES, "/jobs": SAMPLES}
PAUSE = 0.01
"""Seconds between two pieces of a body that is sent slowly."""
PIECES = 20
LENGTHS = ("-1", "+5", "5, 5", "1e3", "0x10", "9" * 30, "", "5 5", "²")
CHUNKED = {"Transfer-Encoding": "chunked"}


def cut_off(rng: Random) -> Attack:
    """Return a request whose sender closes the connection before it has sent everything."""
    target, body = _ordinary(rng)
    whole = message("POST", target, body, {"Expect": "100-continue"} if rng.random() < 0.1 else None)
    return Attack("cut off", (whole[: rng.randint(1, len(whole) - 1)],), broken=True)


def dribbled(rng: Random) -> Attack:
    """Return a valid request that is sent in small pieces; it must be scored."""
    target, body = _ordinary(rng)
    whole = message("POST", target, body)
    cuts = sorted(rng.sample(range(1, len(whole)), PIECES))
    pieces = tuple(whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True))
    beside = (0, 1, 2) if target == "/v1/score" else ()
    return Attack("dribbled", pieces, pause=PAUSE, neighbours=beside)


def lengths(rng: Random) -> Attack:
    """Return a request whose Content-Length is too large, too small or not a number."""
    target, body = _ordinary(rng)
    off = len(body) + rng.choice([-1, 1]) * rng.randint(1, len(body))
    said = rng.choice([str(off), rng.choice(LENGTHS)])
    headers = {"Content-Length": said, **(CHUNKED if rng.random() < 0.2 else {})}
    return Attack("lengths", (message("POST", target, body, headers),), broken=True)


def chunks(rng: Random) -> Attack:
    """Return a request with invalid chunked encoding."""
    target, body = _ordinary(rng)
    half = len(body) // 2
    first = b"%x\r\n%s\r\n" % (half, body[:half])
    rest = body[half:]
    broken = rng.choice(
        [
            b"zz\r\n%s\r\n0\r\n\r\n" % rest,
            b"-5\r\n%s\r\n0\r\n\r\n" % rest,
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(rest) - 1, rest),
            b"%x\r\n%s" % (len(rest) + 10, rest),
            b"f" * 16 + b"\r\n" + rest,
            b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(rest), b"a" * 20_000, rest),
            b"%x\n%s\n0\n\n" % (len(rest), rest),
            b"%x\r\n%s\r\n" % (len(rest), rest),
            b"%x\r\n%s\r\n0\r\nX: %s" % (len(rest), rest, b"a" * 20_000),
            b"",
        ]
    )
    coding = rng.choice(["chunked"] * 4 + ["chunked, identity", "xchunked", "gzip, chunked"])
    return Attack("chunks", (message("POST", target, first + broken, {"Transfer-Encoding": coding}),), broken=True)


def _ordinary(rng: Random) -> tuple[str, bytes]:
    target, body = rng.choice(list(TARGETS.items()))
    return target, json.dumps(body).encode()


KINDS: dict[str, Make] = {"cut off": cut_off, "dribbled": dribbled, "lengths": lengths, "chunks": chunks}
