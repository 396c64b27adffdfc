"""A fake replica that is a judge, an embedding server and a reward server in one, with faults on demand.

`python replica.py [PORT]` prints its port. `GET /_stats` returns the number of requests for scores (`requests`), and of
those that got one (`answered`). `POST /_set` changes its behavior:

    until     number of requests for scores after which it is no longer ill; 0 for never
    ill       the fault; empty for none. An HTTP status; `slow`: status 500 after a second; `html`, `empty` or `error`:
              status 200 with such a body; `hang`: no reply, except from /health; `reset`: an incomplete reply
    delay     seconds that a request takes
    limit     maximum number of concurrent requests; it replies 503 to others
    poison    a word; it replies 500 to a request whose body contains it
    bytes     maximum size of a body; it replies 413 to larger ones
    lost      number of GET requests that get no reply, from now on; /health replies always
"""

from __future__ import annotations

import asyncio
import collections
import json
import uuid
from typing import Any

from aiohttp import web

from tests.support.serving import run

STATE: dict[str, Any] = {"ill": "", "until": 0, "delay": 0.05, "limit": 10**6, "poison": "", "bytes": 10**9, "lost": 0}
COUNTS: collections.Counter[str] = collections.Counter()
FINGERPRINT = uuid.uuid4().hex


def completion(_: Any) -> Any:
    message = {"role": "assistant", "content": "REWARD: 0.800"}
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def vectors(body: Any) -> Any:
    return [[float(len(text)), 1.0, 2.0] for text in body["inputs"]]


def scores(body: Any) -> Any:
    return {"scores": [{"value": 1.0, "status": "ok", "reason": ""} for _ in body["items"]]}


async def spoil(request: web.Request, ill: str) -> web.StreamResponse:
    """Reply with a fault; `ill` is one of the values in the module docstring."""
    if ill == "slow":
        await asyncio.sleep(1.0)
        return web.json_response({"error": "CUDA error"}, status=500)
    if ill == "hang":
        await asyncio.sleep(3600)
    if ill == "html":
        return web.Response(text="<html><title>maintenance</title></html>", content_type="text/html")
    if ill == "error":
        return web.json_response({"error": {"message": "the provider failed", "code": "upstream"}})
    if ill == "reset":
        reply = web.StreamResponse(headers={"Content-Length": "5000"})
        await reply.prepare(request)
        await reply.write(b'{"choices"')
        assert request.transport is not None
        request.transport.close()
        return reply
    if ill == "empty":
        return web.Response()
    return web.json_response({"error": "it is ill"}, status=int(ill))


def answer(make: Any) -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        data = await request.read()
        COUNTS["requests"] += 1
        if len(data) > STATE["bytes"]:
            return web.json_response({"error": "too large"}, status=413)
        if STATE["ill"] and not 0 < STATE["until"] < COUNTS["requests"]:
            return await spoil(request, STATE["ill"])
        if COUNTS["now"] >= STATE["limit"]:
            return web.json_response({"error": "busy"}, status=503)
        COUNTS["now"] += 1
        try:
            await asyncio.sleep(STATE["delay"])
        finally:
            COUNTS["now"] -= 1
        if STATE["poison"] and STATE["poison"].encode() in data:
            return web.json_response({"error": "cannot encode NaN"}, status=500)
        COUNTS["answered"] += 1
        return web.json_response(make(json.loads(data)))

    return handle


def say(record: Any) -> Any:
    async def handle(_: web.Request) -> web.StreamResponse:
        if STATE["lost"]:
            STATE["lost"] -= 1
            await asyncio.sleep(3600)
        return web.json_response(record)

    return handle


async def change(request: web.Request) -> web.StreamResponse:
    STATE.update(await request.json())
    return web.json_response(STATE)


async def stats(_: web.Request) -> web.StreamResponse:
    return web.json_response(COUNTS)


async def health(_: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


if __name__ == "__main__":
    types = {"reward_types": {"math": {"fingerprint": FINGERPRINT, "fields": []}}}
    run(
        [
            web.post("/v1/chat/completions", answer(completion)),
            web.get("/v1/models", say({"data": [{"id": "m", "owned_by": "vllm"}]})),
            web.get("/version", say({"version": "0.11.2"})),
            web.post("/embed", answer(vectors)),
            web.get("/info", say({"model_id": "m", "max_client_batch_size": 32})),
            web.post("/v1/score", answer(scores)),
            web.get("/v1/reward_types", say(types)),
            web.get("/health", health),
            web.post("/_set", change),
            web.get("/_stats", stats),
        ]
    )
