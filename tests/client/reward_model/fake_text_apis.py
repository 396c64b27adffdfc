"""Servers that read one text, with faults on demand: `python fake_text_apis.py [PORT]` prints its port.

TEI's `/predict` (src/router of 1.8), OpenRLHF's `serve_rm` and SGLang's `/v1/embeddings`, each as strict as its source.
The logit of a text is minus the number of its words, or `logits[TEXT]`. `POST /_set` changes `logits`, `labels`,
`context` and `status`; `GET /_stats` has the bodies.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from tests.support.serving import run

FRESH: dict[str, Any] = {"logits": {}, "labels": ["LABEL_0"], "context": 40, "status": 200}
STATE = dict(FRESH)
BODIES: list[dict[str, Any]] = []


def logit(text: str) -> float:
    found: float = STATE["logits"].get(text, -float(len(text.split())))
    return found


async def body_of(request: web.Request) -> Any:
    body = await request.json()
    BODIES.append({**body, "path": request.path, "key": request.headers.get("Authorization", "")})
    return body


async def predict(request: web.Request) -> web.Response:
    body = await body_of(request)
    if STATE["status"] != 200:
        return web.json_response({"error": "Model is overloaded", "error_type": "overloaded"}, status=STATE["status"])
    [[text]] = body["inputs"]  # a list of two texts is one pair, and one of lists a batch
    if (words := len(text.split())) > STATE["context"] and not body["truncate"]:
        message = f"Input validation error: `inputs` must have less than {STATE['context']} tokens. Given: {words}"
        return web.json_response({"error": message, "error_type": "Validation"}, status=413)
    assert body["raw_scores"] is True
    classes = [{"label": label, "score": logit(text) * (at + 1)} for at, label in enumerate(STATE["labels"])]
    return web.json_response([sorted(classes, key=lambda one: -one["score"])])


async def get_reward(request: web.Request) -> web.Response:
    queries = (await body_of(request))["query"]
    rewards = [logit(text) for text in queries]
    return web.json_response({"rewards": rewards, "scores": rewards, "extra_logs": {}})


async def embeddings(request: web.Request) -> web.Response:
    body = await body_of(request)
    if (words := len(body["input"].split())) > STATE["context"]:
        message = f"The input ({words} tokens) is longer than the model's context length ({STATE['context']} tokens)."
        return web.json_response({"object": "error", "message": message, "code": 400}, status=400)
    data = [{"object": "embedding", "embedding": [logit(body["input"])], "index": 0}]
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})


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
            web.post("/predict", predict),
            web.post("/get_reward", get_reward),
            web.post("/v1/embeddings", embeddings),
            web.post("/_set", set_state),
            web.get("/_stats", stats),
        ]
    )
