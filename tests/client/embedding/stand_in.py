"""An embedding server's interface with faults on demand, for what a real one cannot be made to do.

`python stand_in.py [PORT]` prints its port. `POST /_set {"mode": …}` changes how it answers, `GET /_stats` tells what
it was asked. A text's vector counts its letters.

    mode      ok, hang, drop, garbage, short, ragged, longer, uneven (longer for a text alone), nan, null, zero, hold (a
              request is at work until another mode is set), or an HTTP status
    embed     whether there is /embed; openai does the same for /v1/embeddings
    info      what /info says; null for none
    bytes     of a request's body beyond which it is refused with 413
    most      texts in a request beyond which it is refused with 413
    permits   texts at work beyond which a request is refused with 429
    delay     seconds that a request takes
"""

from __future__ import annotations

import asyncio
import collections
import json
import uuid
from typing import Any

from aiohttp import web

from tests.support.serving import run

DIMENSIONS = 26
INFO = {"model_id": "stand-in", "model_sha": uuid.uuid4().hex, "max_client_batch_size": 32}
STATE: dict[str, Any] = {
    "mode": "ok",
    "embed": True,
    "openai": True,
    "info": INFO,
    "bytes": 2_000_000,
    "most": 1024,
    "permits": 10**9,
    "delay": 0.0,
}
COUNTS: collections.Counter[str] = collections.Counter()
SEEN: collections.Counter[str] = collections.Counter()
BATCHES: list[list[int]] = []
LAST: dict[str, Any] = {}


def vector(text: str) -> list[float]:
    counts = collections.Counter(text.lower())
    return [float(counts[chr(ord("a") + at)]) for at in range(DIMENSIONS)]


def spoiled(vectors: list[Any], mode: str) -> Any:
    if mode == "short":
        return vectors[:-1]
    if mode == "ragged":
        return [vectors[0][:-1], *vectors[1:]] if len(vectors) > 1 else [[]]
    if mode == "longer" or (mode == "uneven" and len(vectors) == 1):
        return [[*one, 1.0] for one in vectors]
    if mode in ("nan", "null", "zero"):
        value = {"nan": float("nan"), "null": None, "zero": 0.0}[mode]
        return [[value] * DIMENSIONS for _ in vectors]
    return vectors


async def vectors_of(texts: list[str]) -> Any:
    """The vectors, or the reply that says why there are none."""
    if not texts:
        COUNTS["probes"] += 1
        return web.json_response({"error": "empty", "error_type": "Empty"}, status=400)
    mode = STATE["mode"]
    COUNTS["requests"] += 1
    if len(texts) > STATE["most"] or mode == "413":
        return web.json_response({"error": "too much", "error_type": "Validation"}, status=413)
    if any("REFUSED" in text for text in texts):
        return web.json_response({"error": "not this one", "error_type": "Validation"}, status=422)
    if mode.isdigit():
        return web.json_response({"error": f"mode {mode}"}, status=int(mode))
    if mode == "hang":
        await asyncio.sleep(3600)
    if COUNTS["at_work"] + len(texts) > STATE["permits"]:
        COUNTS["refused"] += 1
        return web.json_response({"error": "Model is overloaded", "error_type": "Overloaded"}, status=429)
    COUNTS["at_work"] += len(texts)
    COUNTS["most_at_work"] = max(COUNTS["most_at_work"], COUNTS["at_work"])
    await asyncio.sleep(STATE["delay"])
    while STATE["mode"] == "hold":
        await asyncio.sleep(0.01)
    COUNTS["at_work"] -= len(texts)
    SEEN.update(texts)
    BATCHES.append([len(text) for text in texts])
    return spoiled([vector(text) for text in texts], mode)


async def embed(request: web.Request) -> web.StreamResponse:
    COUNTS["embed"] += 1
    if not STATE["embed"]:
        return web.json_response({"error": "no such path"}, status=404)
    return await answer(request, "inputs", lambda vectors: vectors)


async def embeddings(request: web.Request) -> web.StreamResponse:
    COUNTS["openai"] += 1
    if not STATE["openai"]:
        return web.json_response({"error": "no such path"}, status=404)

    def reply(vectors: list[Any]) -> Any:
        data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(vectors)]
        return {"object": "list", "model": "stand-in", "data": data[::-1]}

    return await answer(request, "input", reply)


async def answer(request: web.Request, field: str, shape: Any) -> web.StreamResponse:
    if STATE.get("key") and request.headers.get("Authorization") != f"Bearer {STATE['key']}":
        return web.Response(status=401)
    data = await request.read()
    if len(data) > STATE["bytes"]:
        return web.json_response({"error": "length limit exceeded", "error_type": "Validation"}, status=413)
    body = json.loads(data)
    LAST.update(body={name: value for name, value in body.items() if name != field})
    found = await vectors_of(body[field])
    if isinstance(found, web.StreamResponse):
        return found
    if STATE["mode"] == "drop" and request.transport is not None:
        request.transport.close()
    if STATE["mode"] == "garbage":
        return web.Response(body=b"<html>", content_type="application/json")
    return web.json_response(shape(found))


async def info(request: web.Request) -> web.StreamResponse:
    COUNTS["info"] += 1
    if STATE.get("key") and request.headers.get("Authorization") != f"Bearer {STATE['key']}":
        return web.Response(status=401)
    if STATE["info"] is None:
        return web.json_response({"error": "no such path"}, status=404)
    return web.json_response(STATE["info"])


async def models(_: web.Request) -> web.StreamResponse:
    if STATE.get("models") is None:
        return web.json_response({"error": "no such path"}, status=404)
    return web.json_response({"object": "list", "data": STATE["models"]})


async def change(request: web.Request) -> web.StreamResponse:
    STATE.update(await request.json())
    return web.json_response(STATE)


async def stats(_: web.Request) -> web.StreamResponse:
    twice = [text for text, times in SEEN.items() if times > 1]
    return web.json_response({**COUNTS, **LAST, "texts": SEEN.total(), "twice": twice, "batches": BATCHES})


async def health(_: web.Request) -> web.StreamResponse:
    if STATE["mode"] == "hang":
        await asyncio.sleep(3600)
    return web.Response(text="ok")


if __name__ == "__main__":
    run(
        [
            web.post("/embed", embed),
            web.post("/v1/embeddings", embeddings),
            web.get("/info", info),
            web.get("/v1/models", models),
            web.get("/health", health),
            web.post("/_set", change),
            web.get("/_stats", stats),
        ]
    )
