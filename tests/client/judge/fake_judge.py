"""vLLM's interface with faults on demand, for what a real server cannot be made to do.

`python fake_judge.py [PORT]` prints its port. `POST /_set` changes what it answers: `content`, `reasoning` and `finish`
of a message, `by_model` for contents by the model that is asked, `raw` for a whole body, `usage` for what it says of
its tokens, `status`, `delay` in seconds, `delays` in turn, `stuck` for the number of requests that are never answered,
`silent_on` for a text of a last message that is never answered, `turns` for states that the next requests set in turn,
`held` for the number of requests after which others wait until it is raised,
`together` for the number of requests that must be in flight at once before any is answered, `replies` for contents
in turn, `models`, `refuse` for a path that is not there, `broken` for one that answers 500,
`met` for texts of criteria that are met, with `faults` in turn (`drop`, `contradict`, `misnumber`, `prose`, `words`),
`compares` for candidates that are compared by the last number of their texts (`first` adds to what is shown first),
`ignores` for fields it does not know, `chances` of tokens; `reset` forgets everything.
`GET /_stats` tells what it was asked. Its tokens are the words of a text, the texts of tokens its `specials`, words and
signs, once what it `drops` is gone; a chat begins with all specials. Below `/judges/NAME` it answers the same.
"""

from __future__ import annotations

import asyncio
import collections
import json
import math
import re
import zlib
from typing import Any

from aiohttp import web

from tests.support.serving import run

FRESH: dict[str, Any] = {
    "content": None,
    "by_model": {},
    "reasoning": None,
    "finish": "stop",
    "raw": None,
    "usage": None,
    "status": 200,
    "error": {"error": {"message": "not now"}},
    "delay": 0.0,
    "delays": [],
    "is_gateway": False,
    "stuck": 0,
    "silent_on": None,
    "turns": [],
    "held": None,
    "together": 0,
    "replies": [],
    "models": [{"id": "small", "root": "/models/small", "max_model_len": 4096}],
    "owned_by": "vllm",
    "version": "0.32.0",
    "refuse": "",
    "broken": "",
    "chances": {},
    "ignores": [],
    "specials": [],
    "drops": "",
    "met": None,
    "compares": False,
    "first": 0.0,
    "faults": [],
}
STATE = dict(FRESH)
COUNTS: collections.Counter[str] = collections.Counter()
ARRIVED = asyncio.Event()
BODIES: list[dict[str, Any]] = []
PATHS: set[str] = set()
CANDIDATES = re.compile(r"^Candidate \w+:\n<(candidate-\w+)>\n(.*?)\n</\1>", re.DOTALL | re.MULTILINE)
CRITERIA = re.compile(r"<criteria-\w+>\n(.*?)\n</criteria", re.DOTALL)
ANSWERED: collections.Counter[str] = collections.Counter()


def token_of(word: str) -> int:
    return zlib.crc32(word.encode()) % 50_000


async def chat(request: web.Request) -> web.StreamResponse:
    PATHS.add(request.path_qs)
    body = await request.json()
    BODIES.append({**body, "headers": dict(request.headers)})
    COUNTS["concurrent"] += 1
    COUNTS["max_concurrent"] = max(COUNTS["max_concurrent"], COUNTS["concurrent"])
    number = len(BODIES)
    STATE.update(STATE["turns"].pop(0) if STATE["turns"] else {})
    stuck, STATE["stuck"] = STATE["stuck"] > 0 or last_content(body) == STATE["silent_on"], STATE["stuck"] - 1
    try:
        while STATE["held"] is not None and number > STATE["held"]:
            await asyncio.sleep(0.01)
        delay = STATE["delays"].pop(0) if STATE["delays"] else STATE["delay"]
        await together()
        await asyncio.sleep(3600 if stuck else delay)
    finally:
        COUNTS["concurrent"] -= 1
    if STATE["status"] != 200:
        return web.json_response(STATE["error"], status=STATE["status"])
    for field in ("thinking_token_budget", "continue_final_message"):
        if field in body and field in STATE["ignores"]:
            return web.json_response({"error": {"message": f"{field} is set but ..."}}, status=400)
    ANSWERED[last_content(body)] += 1
    if STATE["raw"] is not None:
        return web.Response(body=STATE["raw"].encode(), content_type="application/json")
    reply = {"object": "chat.completion", "model": body["model"], "choices": [choice(body)]}
    return web.json_response(reply if STATE["usage"] is None else {**reply, "usage": STATE["usage"]})


def last_content(body: dict[str, Any]) -> str:
    """The content of the last message, of parts the text."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def last_user(body: dict[str, Any]) -> str:
    """The content of the last message of the user, if it is a text."""
    texts = [message["content"] for message in body["messages"] if message["role"] == "user"]
    return texts[-1] if isinstance(texts[-1], str) else ""


def merits_in(user: str) -> list[float]:
    """How good each candidate is: its last number as a percentage, else a hash."""
    texts = [text for _, text in CANDIDATES.findall(user)]
    return [float((re.findall(r"\d+", text) or [zlib.crc32(text.encode())])[-1]) % 101 / 100 for text in texts]


async def together() -> None:
    """Wait until as many requests as are wanted were in flight at once."""
    if COUNTS["max_concurrent"] >= STATE["together"]:
        ARRIVED.set()
    else:
        ARRIVED.clear()
    await ARRIVED.wait()


def choice(body: dict[str, Any]) -> dict[str, Any]:
    content = STATE["replies"].pop(0) if STATE["replies"] else STATE["by_model"].get(body["model"], STATE["content"])
    if STATE["met"] is not None and (criteria := CRITERIA.search(last_content(body))):
        content = rubric(criteria[1], STATE["faults"].pop(0) if STATE["faults"] else "", body)
    merits = merits_in(last_user(body)) if STATE["compares"] else []
    if STATE["compares"] and "logprobs" not in body:
        content = listed(merits, STATE["faults"].pop(0) if STATE["faults"] else "", body)
    if content is None:
        content = f"REWARD: 0.{zlib.crc32(last_content(body).encode()) % 1000:03}"
    message = {"role": "assistant", "content": content or None, "reasoning": STATE["reasoning"]}
    logprobs = None
    if body.get("logprobs"):
        chances = STATE["chances"]
        if STATE["compares"]:
            better = min(max((1 + merits[0] - merits[1]) / 2 + STATE["first"], 0.0), 1.0)
            chances = {"A": max(better, 1e-9), "B": max(1 - better, 1e-9)}
        told = {token_of(word): chance for word, chance in chances.items()}
        ids = [] if "logprob_token_ids" in STATE["ignores"] else body["logprob_token_ids"]
        entries = [{"token": f"token_id:{one}", "logprob": math.log(told.get(one, 1e-9))} for one in ids]
        logprobs = {"content": [{"token": "token_id:0", "logprob": -1.0, "top_logprobs": entries}]}
    return {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": STATE["finish"]}


def rubric(criteria: str, fault: str, body: dict[str, Any]) -> str:
    """Numbered answers to criteria, in the form that the request holds them to, or with a fault."""
    lines = re.findall(r"^(\d+)\. (.*)$", criteria, re.MULTILINE)
    words = [(at, "yes" if any(text in line for text in STATE["met"]) else "no") for at, line in lines]
    if fault == "drop":
        words = words[:1] + words[2:]
    if fault == "contradict":
        words += [(words[0][0], "no" if words[0][1] == "yes" else "yes")]
    if fault == "misnumber":
        words = [(str(int(at) + 1), word) for at, word in words]
    if fault == "words":
        return "All of them but one, I would say."
    if "response_format" in body and not fault:
        return json.dumps(dict(words))
    text = "\n".join(f"{at}: {word}" for at, word in words)
    enforced = body.get("structured_outputs", {}).get("regex")
    assert fault or enforced is None or re.fullmatch(enforced, text), (enforced, text)
    return f"1: no\n2: no\nis what it claims. But:\n\n{text}" if fault == "prose" else text


def listed(merits: list[float], fault: str, body: dict[str, Any]) -> str:
    """A score for each candidate, in the form that the request holds it to, or with a fault."""
    merits = [min(1.0, merit + STATE["first"] * (not at)) for at, merit in enumerate(merits)]
    lines = [f"{at}: {merit:.2f}" for at, merit in enumerate(merits, 1)]
    if fault == "drop":
        lines = lines[:1] + lines[2:]
    if fault == "high":
        lines[0] = "1: 7.50"
    text = "\n".join(lines)
    enforced = body.get("structured_outputs", {}).get("regex")
    assert fault or enforced is None or re.fullmatch(enforced, text), (enforced, text)
    return text


async def tokenize(request: web.Request) -> web.StreamResponse:
    PATHS.add(request.path_qs)
    if STATE["refuse"] == "/tokenize":
        return web.json_response({"error": "not found"}, status=404)
    COUNTS["tokenized"] += 1
    body = await request.json()
    kwargs = [] if "enable_thinking" in STATE["ignores"] else body.get("chat_template_kwargs")
    chat = " ".join([*STATE["specials"], json.dumps([body.get("messages"), kwargs])])
    text = "".join(char for char in body.get("prompt", chat) if char not in STATE["drops"])
    pieces = re.findall("|".join([*map(re.escape, STATE["specials"]), r"\w+", r"[^\w\s]"]), text)
    tokens = [token_of(word) for word in text.split()]
    return web.json_response({"count": len(tokens), "max_model_len": 4096, "tokens": tokens, "token_strs": pieces})


async def models(request: web.Request) -> web.StreamResponse:
    PATHS.add(request.path_qs)
    if STATE["refuse"] == "/v1/models":
        return web.json_response({"error": "not found"}, status=404)
    COUNTS["models"] += 1
    if STATE["broken"] == "/v1/models":
        return web.json_response({"error": "busy"}, status=500)
    told = STATE["models"] and [{"owned_by": STATE["owned_by"], **one} for one in STATE["models"]]
    return web.json_response({"object": "list", "data": told})


async def version(request: web.Request) -> web.StreamResponse:
    PATHS.add(request.path_qs)
    if STATE["broken"] == "/version":
        return web.json_response({"error": "busy"}, status=500)
    return web.json_response({"version": STATE["version"]})


async def health(_: web.Request) -> web.StreamResponse:
    return web.Response()


async def change(request: web.Request) -> web.StreamResponse:
    state = await request.json()
    if state.pop("reset", False):
        STATE.update(json.loads(json.dumps(FRESH)))
        COUNTS.clear()
        BODIES.clear()
        PATHS.clear()
        ANSWERED.clear()
    STATE.update(state)
    return web.json_response(STATE)


async def stats(_: web.Request) -> web.StreamResponse:
    seen = {**COUNTS, "requests": len(BODIES), "answered": ANSWERED, "bodies": BODIES, "paths": sorted(PATHS)}
    return web.json_response(seen)


def marked(handle: Any) -> Any:
    """The handler, whose replies come through a gateway if `is_gateway` says so."""

    async def reply(request: web.Request) -> web.StreamResponse:
        found = await handle(request)
        if STATE["is_gateway"]:
            found.headers["X-Gateway"] = "least_conn"
        return found

    return reply


if __name__ == "__main__":
    run(
        [
            *(
                handler
                for api_path in ("", "/judges/{name}")
                for handler in (
                    web.post(f"{api_path}/v1/chat/completions", marked(chat)),
                    web.post(f"{api_path}/tokenize", marked(tokenize)),
                    web.get(f"{api_path}/v1/models", marked(models)),
                    web.get(f"{api_path}/health", health),
                    web.get(f"{api_path}/version", marked(version)),
                )
            ),
            web.post("/_set", change),
            web.get("/_stats", stats),
        ]
    )
