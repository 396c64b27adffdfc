"""A fake reward server with faults on demand, for cases that a real server cannot reproduce.

`python fault_server.py [PORT]` prints its port. The score of a response is its length in characters. `GET /_stats`
returns counts of the requests, in `twice` the responses that it got more than once, and in `arrivals` when each request
for scores came, on `time.monotonic()`. `POST /_set` changes its behavior:

    mode            how `/v1/score` replies: `ok`; `hold`, which waits for another mode; an HTTP status; `hang`, also
                    for `/health`; `drop`, which closes the connection; `garbage`, which is no JSON; `short`, which
                    lacks a score; or `nan`
    delay           seconds before a reply of `/v1/score`
    headers         headers of replies with the HTTP status of `mode`
    said            fields that replace those of each score
    names           rules that `/v1/reward_types` lists
    fingerprint     their fingerprint
    fields          their fields
    types_refused   whether `/v1/reward_types` replies 503
"""

from __future__ import annotations

import asyncio
import collections
import json
import time
import uuid
from typing import Any

from aiohttp import web

from tests.support.serving import run

STATE: dict[str, Any] = {"mode": "ok", "delay": 0.0, "concurrent": 0, "fingerprint": uuid.uuid4().hex}
COUNTS: collections.Counter[str] = collections.Counter()
SEEN: collections.Counter[str] = collections.Counter()
ARRIVALS: list[float] = []


async def score(request: web.Request) -> web.StreamResponse:
    STATE["concurrent"] += 1
    COUNTS["max_concurrent"] = max(COUNTS["max_concurrent"], STATE["concurrent"])
    try:
        return await answer(request)
    finally:
        STATE["concurrent"] -= 1


async def answer(request: web.Request) -> web.StreamResponse:
    items = json.loads(await request.read())["items"]
    COUNTS["requests" if items else "probes"] += 1
    ARRIVALS.append(time.monotonic())
    COUNTS["items"] += len(items)
    SEEN.update(item["solution_str"] for item in items)
    COUNTS["authorized"] += "Authorization" in request.headers
    while STATE["mode"] == "hold":
        await asyncio.sleep(0.01)
    mode, delay = STATE["mode"], STATE["delay"]
    await asyncio.sleep(delay)
    if mode.isdigit():
        return web.json_response({"error": f"mode {mode}"}, status=int(mode), headers=STATE.get("headers"))
    if mode == "hang":
        await asyncio.sleep(3600)
    if mode == "drop" and request.transport is not None:
        request.transport.close()
    if mode == "garbage":
        return web.Response(body=b"<html>", content_type="application/json")
    said = STATE.get("said", {})
    scores: list[dict[str, Any]] = [
        {"value": len(item["solution_str"]), "status": "ok", "reason": "", **said} for item in items
    ]
    if mode == "short":
        scores.pop()
    if mode == "nan":
        scores[0]["value"] = float("nan")
    COUNTS["scored"] += len(items)
    return web.json_response({"scores": scores})


async def reward_types(_: web.Request) -> web.StreamResponse:
    COUNTS["types"] += 1
    if STATE.get("types_refused"):
        return web.json_response({"error": "not now"}, status=503)
    about = {"fingerprint": STATE["fingerprint"], "fields": STATE.get("fields", [])}
    names = STATE.get("names", ("math", "gsm8k", "exact_match"))
    return web.json_response({"reward_types": dict.fromkeys(names, about)})


async def change(request: web.Request) -> web.StreamResponse:
    STATE.update(await request.json())
    return web.json_response(STATE)


async def stats(_: web.Request) -> web.StreamResponse:
    twice = [text for text, times in SEEN.items() if times > 1]
    return web.json_response({**COUNTS, "twice": twice, "arrivals": ARRIVALS})


async def health(_: web.Request) -> web.StreamResponse:
    if STATE["mode"] == "hang":
        await asyncio.sleep(3600)
    return web.Response(text="ok")


if __name__ == "__main__":
    run(
        [
            web.post("/v1/score", score),
            web.get("/v1/reward_types", reward_types),
            web.get("/health", health),
            web.post("/_set", change),
            web.get("/_stats", stats),
        ]
    )
