"""vLLM's pooling interface with faults on demand: `python fake_pooling.py [PORT]` prints its port.

It is as strict as vLLM 0.32: `messages` of one conversation, unknown fields are ignored, a text of more than `context`
words is 400. The logit of a response is `logits[TEXT]`, else minus the number of its words. `POST /_set` changes
`outputs`, `squash` (`use_activation` is ignored), `classify` (whether there is such a path), `models`, `status`,
`stuck` and `steps` (the numbers of each step); `GET /_stats` has the bodies. A process reward model says 0.1 of a step
with the word `wrong`, else 0.9.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from aiohttp import web

from tests.support.serving import run

TAG = "<extra_0>"
FRESH: dict[str, Any] = {
    "logits": {},
    "outputs": 1,
    "squash": False,
    "steps": None,
    "classify": True,
    "context": 40,
    "models": [{"id": "rm", "root": "/models/rm", "owned_by": "vllm"}],
    "status": 200,
    "stuck": 0,
}
STATE = dict(FRESH)
BODIES: list[dict[str, Any]] = []


def refusal(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
    return web.json_response({"error": error}, status=status)


async def asked(request: web.Request) -> tuple[dict[str, Any], web.Response | None]:
    """The body of a request, and what is wrong with it."""
    body = await request.json()
    BODIES.append({**body, "path": request.path, "key": request.headers.get("Authorization", "")})
    if STATE["stuck"] > 0:
        STATE["stuck"] -= 1
        await asyncio.sleep(3600)
    if STATE["status"] != 200:
        return body, refusal(STATE["status"], "not now")
    served = [one["id"] for one in STATE["models"]]
    if body["model"] not in served:
        return body, refusal(404, f"The model `{body['model']}` does not exist.")
    words = sum(len(message["content"].split()) for message in body["messages"])
    if words > STATE["context"]:
        message = f"This model's maximum context length is {STATE['context']} tokens. However, you requested {words}."
        return body, refusal(400, message)
    return body, None


async def classify(request: web.Request) -> web.Response:
    body, wrong = await asked(request)
    if not STATE["classify"]:
        return refusal(404, "Not Found")
    if wrong is not None:
        return wrong
    text = body["messages"][-1]["content"]
    logit = STATE["logits"].get(text, -float(len(text.split())))
    logits = [logit] if STATE["outputs"] == 1 else [-logit, logit]
    raw = body.get("use_activation") is False and not STATE["squash"]
    probs = logits if raw else [1 / (1 + math.exp(-one)) for one in logits]
    one = {"index": 0, "label": "LABEL_0", "probs": probs, "num_classes": len(probs)}
    usage = {"prompt_tokens": 7, "total_tokens": 7, "completion_tokens": 0}
    return web.json_response({"object": "list", "model": body["model"], "data": [one], "usage": usage})


async def pooling(request: web.Request) -> web.Response:
    body, wrong = await asked(request)
    if wrong is not None:
        return wrong
    *steps, _ = body["messages"][-1]["content"].split(TAG)
    good = [0.1 if "wrong" in step else 0.9 for step in steps]
    data = [{"index": 0, "object": "pooling", "data": [STATE["steps"] or [1 - one, one] for one in good]}]
    return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": 7}})


async def models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": STATE["models"]})


async def set_state(request: web.Request) -> web.Response:
    STATE.update(FRESH)
    STATE.update(await request.json())
    BODIES.clear()
    return web.Response()


async def stats(_: web.Request) -> web.Response:
    return web.json_response({"bodies": BODIES})


if __name__ == "__main__":
    run(
        [
            web.post("/classify", classify),
            web.post("/pooling", pooling),
            web.get("/v1/models", models),
            web.post("/_set", set_state),
            web.get("/_stats", stats),
        ]
    )
