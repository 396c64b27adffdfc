"""Generate hostile requests to `/jobs`."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from urllib.parse import quote

from tests.support.hostile.attack import Attack, Make, message
from tests.support.hostile.protocols import MIDDLE, SAMPLE, SAMPLES, neighbours, places, planted
from tests.support.hostile.values import CONTROLS, VALUES

BOUNDARY = "rewardstack-boundary"
ODD_IDS = (
    "0",
    "..",
    "../health",
    "%2e%2e%2fhealth",
    "G" * 32,
    "a" * 33,
    "a" * 3000,
    "%00",
    "%ff" * 16,
    "*",
    "é",
    "None",
)
NUMBERS = ("0", "1", "-1", "1e3", "", "9" * 15, "9" * 400, "NaN", "0x1", "1 ", "%00", "²", "null")
PARTS = ("0", "1", "2", "", "true", "%31", "1&partial=0")


def samples(rng: Random) -> Attack:
    """Submit a job with something hostile: a sample, the line format, the form, or the content type."""
    value = VALUES[rng.choice(list(VALUES))](rng)
    place = rng.choice(list(places(SAMPLES)))
    line = planted(SAMPLE, rng.choice([found[2:] for found in places(SAMPLES) if found[1:2] == (MIDDLE,)]), value)
    lines = b"\n".join([planted(SAMPLE, ("ground_truth",), '"5"'), line, planted(SAMPLE, ("ground_truth",), '"5"')])
    form, lined = f"multipart/form-data; boundary={BOUNDARY}", "application/x-ndjson"
    kind, body, beside = rng.choice(
        [
            ("application/json", planted(SAMPLES, place, value), neighbours(place)),
            (lined, lines, neighbours(("items", MIDDLE))),
            (lined, lines.replace(b"\n", rng.choice([b"\r", b"\n\n\n", b"\x00\n", b", "])), ()),
            (lined, lines[: rng.randint(0, len(lines))], ()),
            (form, _form(rng, lines), ()),
            (form, _form(rng, lines)[: rng.randint(0, 200)], ()),
            (
                rng.choice([form + "; boundary=", "multipart/form-data", "text/csv", lined + "; charset=utf-7"]),
                lines,
                (),
            ),
        ]
    )
    return Attack("jobs", (message("POST", "/jobs", body, {"Content-Type": kind, **_key(rng)}),), neighbours=beside)


def _form(rng: Random, content: bytes) -> bytes:
    """Return a multipart form with one to three parts with the same content and name."""
    name = rng.choice(["file", "", "../../etc/passwd", "a" * 2000])
    part = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode() + content
    )
    return b"\r\n".join([part] * rng.randint(1, 3)) + f"\r\n--{BOUNDARY}--\r\n".encode()


def _key(rng: Random) -> Mapping[str, str]:
    odd = rng.choice(["", "a b", "a" * 256, "\xe9", "a\tb", "*", "key:" + "0" * 32, "../" * 20])
    return rng.choice(
        [{}, {"Idempotency-Key": "same"}, {"Idempotency-Key": str(rng.random())}, {"Idempotency-Key": odd}]
    )


def inquiry(rng: Random) -> Attack:
    """Request an unknown or malformed job id, with odd values for the page of results."""
    ident = rng.choice([*ODD_IDS, f"{rng.getrandbits(128):032x}", rng.choice(CONTROLS) * rng.randint(1, 32)])
    query = {"start": rng.choice(NUMBERS), "count": rng.choice(NUMBERS), "partial": rng.choice(PARTS)}
    chosen = "&".join(f"{name}={quote(text, safe='%&=')}" for name, text in query.items() if rng.random() < 0.7)
    path = f"/jobs/{quote(ident, safe='%/.*')}{rng.choice(['', '/', '/results', '/results/../..'])}"
    method = rng.choice(["GET", "GET", "DELETE", "PUT", "POST"])
    return Attack("inquiries", (message(method, f"{path}?{chosen}"),))


KINDS: dict[str, Make] = {"jobs": samples, "inquiries": inquiry}
