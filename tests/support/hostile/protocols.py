"""Generate valid HTTP requests of all trainers' protocols, with something hostile in one place of the body."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

from rewardstack_rules.scoring.rule import MAX_INLINE
from tests.support.hostile.attack import Attack, Make, message
from tests.support.hostile.values import VALUES, MakeValue

Place = tuple[str | int, ...]

ANSWER = "So we get $\\boxed{5}$."
SAMPLE = {"data_source": "math", "solution_str": ANSWER, "ground_truth": "5", "extra_info": {"note": "a"}}
SAMPLES = {"items": [SAMPLE] * 3}
PROMPTS = [[{"role": "user", "content": "2+3?"}]] * 3
BODIES: dict[str, dict[str, Any]] = {
    "/v1/score": SAMPLES,
    "/v1/explain": SAMPLE,
    "/get_reward?reward_type=math": {"prompts": PROMPTS, "responses": [ANSWER] * 3, "golden_responses": ["5"] * 3},
    "/get_reward": {
        "query": ["2+3? " + ANSWER] * 3,
        "prompts": ["2+3?"] * 3,
        "labels": ["5"] * 3,
        "reward_type": "math",
    },
    "/get_reward?reward_type=gsm8k": {"prompt": "2+3?", "response": "#### 5", "label": "5"},
    "/verify": {
        "responses_create_params": {"input": PROMPTS[0]},
        "response": {"output": [{"type": "message", "role": "assistant", "content": ANSWER}]},
        "question": "2+3?",
        "expected_answer": "5",
        "reward_type": "math",
    },
    "/seed_session": {"id": 1},
    "/aggregate_metrics": {
        "verify_responses": [
            {"_ng_task_index": 0, "_ng_rollout_index": at, "reward": 1.0, "response": {"usage": {"total_tokens": 7}}}
            for at in range(3)
        ]
    },
    "/roll/submit": {
        "prompt": "2+3?",
        "response": ANSWER,
        "reward_type": "math",
        "reward_info": {"ground_truth": "5"},
        "timeout": 20,
        "data_id": 1,
        "rollout_id": 1,
        "priority": 0,
    },
    "/roll/result": {"reward_request_id": "ok_1.0_" + "0" * 32},
}
HOLE = "a hole that no text has"
BATCHES = ("items", "prompts", "responses", "golden_responses", "query", "labels")
OFTEN = 5
"""Extra weight of `/v1/score`, whose bodies have all fields of a sample, when a protocol is chosen."""
MIDDLE = 1
"""Index of the sample in a batch of three whose neighbors are both checked."""


def laborious() -> dict[str, Any]:
    """Return a new right sample that is so long that only an isolated process may score it."""
    return {**SAMPLE, "solution_str": f"{uuid.uuid4()} ".ljust(2 * MAX_INLINE, "0") + ANSWER}


def planted(body: Any, place: Place, value: str) -> bytes:
    """Return a body as JSON, with the value at one place replaced.

    Args:
        body: a valid body.
        place: keys and indices from the top to the place; the last key may be new.
        value: the new value as JSON text, which may be invalid or very deep.
    """
    return json.dumps(_replaced(body, place)).replace(json.dumps(HOLE), value).encode("utf-8", "surrogatepass")


def _replaced(body: Any, place: Place) -> Any:
    if not place:
        return HOLE
    first, *rest = place
    if isinstance(body, list):
        return [_replaced(one, tuple(rest)) if at == first else one for at, one in enumerate(body)]
    return {**body, first: _replaced(body.get(first), tuple(rest))}


def places(body: Any, at: Place = ()) -> Iterator[Place]:
    """Yield all places in a body: the whole body, each value in it, and a new key in each object."""
    yield at
    if isinstance(body, dict):
        yield (*at, "unheard-of")
    inner = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for name, value in inner:
        yield from places(value, (*at, name))


def neighbours(place: Place) -> tuple[int, ...]:
    """Return the indices of the samples that a hostile value at a place must not affect."""
    return (MIDDLE - 1, MIDDLE + 1) if len(place) > 1 and place[0] in BATCHES and place[1] == MIDDLE else ()


def is_outcome(place: Place) -> bool:
    """Return whether a hostile value at a place only affects the score of its sample, and never fails the request."""
    return bool(neighbours(place)) and place[2:3] in (("solution_str",), ("ground_truth",), ("extra_info",))


def anywhere(kind: str, make: MakeValue, rng: Random) -> Attack:
    """Return a request with a hostile value at a random place.

    Args:
        kind: kind of the value, a key of `VALUES`.
        make: generates the value.
        rng: chooses the protocol, the place and the value.
    """
    target = rng.choice([*BODIES, *["/v1/score"] * OFTEN])
    body = BODIES[target]
    found = list(places(body))
    place = rng.choice(rng.choice([found, list(filter(neighbours, found)) or found]))
    sent = message("POST", target, planted(body, place, make(rng)))
    return Attack(kind, (sent,), neighbours=neighbours(place), scored=is_outcome(place))


def bomb(rng: Random) -> Attack:
    """Return a request whose body needs much more memory when it is parsed."""
    target = rng.choice(list(BODIES))
    many = rng.randint(1000, 200_000)
    item = planted(SAMPLE, ("extra_info",), VALUES["types"](rng))
    value = rng.choice(
        [
            b"[" + b",".join([b"[]"] * many) + b"]",
            b"[" + b",".join([b"0"] * many) + b"]",
            b"{" + b",".join(b'"%d":{}' % at for at in range(many)) + b"}",
            b"[" + b",".join([item] * (many // 100)) + b"]",
            b'"' + b"a" * (many * 10) + b'"',
            b"9" * many,
        ]
    )
    name = rng.choice([*BODIES[target], "unheard-of"]).encode()
    whole = json.dumps(BODIES[target]).encode()
    return Attack("bombs", (message("POST", target, b'%s, "%s": %s}' % (whole[:-1], name, value)),))


def encoded(rng: Random) -> Attack:
    """Return a request whose body is compressed, in another character set, of another type, random or cut off."""
    target, body = rng.choice(list(BODIES.items()))
    text = json.dumps(body)
    content, headers = rng.choice(
        [
            (gzip.compress(b" " * rng.randint(1, 5_000_000) + text.encode()), {"Content-Encoding": "gzip"}),
            (text.encode(), {"Content-Encoding": rng.choice(["gzip", "br", "deflate, gzip", "x"])}),
            (text.encode("utf-16"), {"Content-Type": "application/json; charset=utf-16"}),
            (text.encode("utf-32"), {}),
            (b"\xef\xbb\xbf" + text.encode(), {}),
            (text.encode(), {"Content-Type": rng.choice(["text/plain", "", "application/json;" + "a" * 5000, "/"])}),
            (rng.randbytes(rng.randint(0, 2000)), {}),
            (text.encode()[: rng.randint(0, len(text) - 1)], {}),
        ]
    )
    return Attack("encodings", (message("POST", target, content, headers),))


KINDS: dict[str, Make] = {
    **{kind: partial(anywhere, kind, make) for kind, make in VALUES.items()},
    "bombs": bomb,
    "encodings": encoded,
}
