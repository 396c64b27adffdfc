"""Judges that are as strict as their documents say: `tests/cases/judge_servers.json`, each with the pages.

`python strict_judges.py [PORT]` prints its port; the server named `openai` has the base URL `/openai`, and so on. Each
takes the fields in `takes`; others it ignores, or refuses in the words of `unknown`, `refuses` some for their values. A
reply is held to a form by those fields in `forms`, and in the judge's own words else; its reasoning stands in
`reasoning` where the model may think. `GET /_stats` tells what each was sent, and what it refused; `POST /_set` with
`reset` forgets it.
"""

from __future__ import annotations

import collections
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.serving import run

SERVERS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases/judge_servers.json").read_text(encoding="utf-8")
)
CRITERIA = re.compile(r"(?<=\\n)\d+\. Says")
"""Of a rubric, in a user's message as JSON."""
CHANCES = {"9": 0.6, "6": 0.2, "0": 0.1, "The": 0.05}
CHAT, MODELS = "/v1/chat/completions", "/v1/models"
BODIES: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
REFUSED: collections.Counter[str] = collections.Counter()
OTHER_PATHS: dict[str, list[str]] = collections.defaultdict(list)


def slug(name: str) -> str:
    """The first part of a server's paths."""
    return re.sub(r"[^a-z0-9.]+", "-", name)


BY_SLUG = {slug(name): name for name in SERVERS}


def token_of(text: str) -> int:
    return zlib.crc32(text.encode()) % 50_000


async def answer(request: web.Request) -> web.StreamResponse:
    name = BY_SLUG[request.match_info["server"]]
    server, path = SERVERS[name], "/" + request.match_info["path"]
    if not allowed(server, request):
        return web.json_response({"error": {"code": "401", "message": "Access denied"}}, status=401)
    if path == server.get("chat", CHAT) and request.method == "POST":
        return await chat(name, server, await request.json())
    OTHER_PATHS[name].append(path)
    if path == server.get("models_path", MODELS) and server["models"] is not None:
        return web.json_response({"object": "list", "data": server["models"]})
    if path == "/version" and "version" in server:
        return web.json_response({"version": server["version"]})
    if path == "/health" and server.get("health"):
        return web.Response()
    if path == "/tokenize" and "logprob_token_ids" in server["takes"]:
        body = await request.json()
        text = body.get("prompt") or json.dumps(body)
        return web.json_response({"tokens": [token_of(text)], "token_strs": re.findall(r"\w+|\W", text)})
    return web.json_response({"error": {"code": "404", "message": "Resource not found"}}, status=404)


def allowed(server: dict[str, Any], request: web.Request) -> bool:
    """Whether the header and the query parameter that the server insists on are there."""
    header, query = server.get("header"), server.get("query")
    return not (
        (header and request.headers.get(header[0]) != header[1]) or (query and request.query.get(query[0]) != query[1])
    )


async def chat(name: str, server: dict[str, Any], body: dict[str, Any]) -> web.StreamResponse:
    BODIES[name].append(body)
    refusal = refused(server, body)
    if refusal is not None:
        REFUSED[name] += 1
        status, reply = refusal
        return web.Response(status=status, body=reply.encode(), content_type="application/json")
    return web.json_response({"object": "chat.completion", "model": body["model"], "choices": [choice(server, body)]})


def refused(server: dict[str, Any], body: dict[str, Any]) -> tuple[int, str] | None:
    """The status and the body of a refusal; None where the request is taken."""
    strange = [field for field in body if field not in server["takes"]]
    unknown = server["unknown"]
    if strange and unknown is not None:
        names = {"all": ", ".join(strange), "first": strange[0], "list": str(strange)}[unknown["names"]]
        text = json.dumps(unknown["body"]).replace("{s}", "s" if len(strange) > 1 else "").replace("{names}", names)
        return unknown["status"], text
    for rule in server.get("refuses", ()):
        if breaks(rule, body):
            return rule["status"], json.dumps(rule["body"]) if not isinstance(rule["body"], str) else rule["body"]
    return None


def breaks(rule: dict[str, Any], body: dict[str, Any]) -> bool:
    field, _, kind = rule["field"].partition(".")
    if field not in body or (kind and body[field]["type"] != kind):
        return False
    if "above" in rule:
        return bool(body[field] > rule["above"])
    if "among" in rule:
        return body[field] not in rule["among"]
    return "but" not in rule or body[field] != rule["but"]


def form_of(server: dict[str, Any], body: dict[str, Any]) -> str:
    """The form that the reply is held to; empty for none."""
    sent = {name for name in ("structured_outputs", "guided_regex", "regex") if name in body}
    kind = body.get("response_format", {}).get("type")
    sent |= {{"regex": "regex_format"}.get(kind, kind)} if kind else set()
    return next((form for form in server["forms"] if form in sent), "")


def choice(server: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    form, count = form_of(server, body), len(CRITERIA.findall(str(body["messages"])))
    content = "It comes to the same.\n**REWARD: 0.750**"
    if form == "json_schema":
        members = body["response_format"]["json_schema"]["schema"]["properties"]
        content = json.dumps({name: member(name, about) for name, about in members.items()})
    elif count:
        content = "\n".join(f"{at}: yes" for at in range(1, count + 1))
    elif form:
        content = "REWARD: 0.750"
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if may_think(body) and "reasoning" in server:
        message[server["reasoning"]] = "REWARD: 0.000?"
    return {"index": 0, "message": message, "logprobs": logprobs(server, body), "finish_reason": "stop"}


def member(name: str, about: dict[str, Any]) -> Any:
    """The value of a member of an object that a schema asks for."""
    return about["enum"][-1] if "enum" in about else 0.75 if name == "REWARD" else 8


def may_think(body: dict[str, Any]) -> bool:
    kwargs = body.get("chat_template_kwargs", {})
    return bool(kwargs.get("enable_thinking", body.get("reasoning_effort", "none") != "none"))


def logprobs(server: dict[str, Any], body: dict[str, Any]) -> dict[str, Any] | None:
    if not body.get("logprobs") or not server["top_logprobs"]:
        return None
    told = {token: math.log(chance) for token, chance in CHANCES.items()}
    if "logprob_token_ids" in body and "logprob_token_ids" in server["takes"]:
        known = {token_of(token): logprob for token, logprob in told.items()}
        entries = [{"token": f"token_id:{one}", "logprob": known.get(one, -20.0)} for one in body["logprob_token_ids"]]
    else:
        entries = [{"token": token, "logprob": logprob} for token, logprob in told.items()]
        entries = entries[: body.get("top_logprobs", 0)]
    return {"content": [{"token": "9", "logprob": told["9"], "top_logprobs": entries}]}


async def stats(_: web.Request) -> web.StreamResponse:
    return web.json_response({"bodies": BODIES, "refused": REFUSED, "other_paths": OTHER_PATHS})


async def change(request: web.Request) -> web.StreamResponse:
    if (await request.json()).get("reset"):
        for store in (BODIES, REFUSED, OTHER_PATHS):
            store.clear()
    return web.json_response({})


if __name__ == "__main__":
    run([web.get("/_stats", stats), web.post("/_set", change), web.route("*", "/{server}/{path:.*}", answer)])
