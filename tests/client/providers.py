"""Scripted model servers: each case of `tests/cases/providers.json` has one, below its own path.

A server has `rules` in order; the first one whose `when` holds gives the reply, with its `status`, `body` and
`headers`, or a completion with its `text`, `finish` and `reasoning`. Conditions about the JSON of the request:

    has, has_any    fields that are present
    not             fields that are present with none of these values
    is_not          fields that are absent, or have none of these values
    value           fields with these values
    over, not_over  fields above, or not above, this number
    longer          number of characters that the last user message exceeds
    text            text in the last user message
    first           number of requests that this rule answers; trial requests do not count

Without a rule that holds, the reply is the next of `replies` (the last one repeats), else a verdict of 0.8.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from rewardstack.scorers.judge.calls import TRIAL_MESSAGE
from tests.support.threaded import serving

Json = dict[str, Any]


def completion(text: str, finish: str | None = "stop", reasoning: str = "") -> Json:
    """Return a chat completion; without a finish reason if `finish` is `-`."""
    message = {"role": "assistant", "content": text, **({"reasoning_content": reasoning} if reasoning else {})}
    choice: Json = {"index": 0, "message": message, **({} if finish == "-" else {"finish_reason": finish})}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


def user_text(body: Json) -> str:
    """Return the text of the last user message; empty for other requests."""
    contents = [message["content"] for message in body.get("messages", ()) if message["role"] == "user"]
    content = contents[-1] if contents else ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def holds(when: Json, body: Json, number: int) -> bool:
    """Return whether all conditions hold for the request with this number."""
    text = user_text(body)
    checks = {
        "has": lambda names: all(name in body for name in names),
        "has_any": lambda names: any(name in body for name in names),
        "not": lambda values: any(name in body and body[name] not in one for name, one in values.items()),
        "is_not": lambda values: any(name not in body or body[name] not in one for name, one in values.items()),
        "value": lambda values: all(body.get(name) == one for name, one in values.items()),
        "over": lambda limits: any(body.get(name, 0) > one for name, one in limits.items()),
        "not_over": lambda limits: all(body.get(name, 0) <= one for name, one in limits.items()),
        "longer": lambda count: len(text) > count,
        "text": lambda part: part in text,
        "first": lambda count: 0 < number <= count,
    }
    return all(checks[name](value) for name, value in when.items())


class Provider:
    """The server of one case.

    Attributes:
        url: its base URL.
        bodies: the requests that it got, without the trials.
    """

    def __init__(self, case: Json) -> None:
        self.url = ""
        self.bodies: list[Json] = []
        self._case = case

    def answer(self, body: Json) -> tuple[int, Json, Any]:
        """Return the status, the headers and the body of the reply to a POST."""
        number = 0
        if user_text(body) != TRIAL_MESSAGE:
            self.bodies.append(body)
            number = len(self.bodies)
        for rule in self._case["rules"]:
            if holds(rule["when"], body, number):
                if "text" in rule:
                    return 200, {}, completion(rule["text"], rule["finish"], rule.get("reasoning", ""))
                return rule["status"], rule.get("headers", {}), rule["body"]
        replies = self._case.get("replies")
        if replies:
            reply = replies[min(max(number, 1), len(replies)) - 1]
            return 200, {}, completion(reply["text"], reply.get("finish", "stop"))
        return 200, {}, completion('{"REWARD": 0.8}' if "response_format" in body else "REWARD: 0.800")

    def models(self) -> Json:
        """Return the list of models."""
        owner = self._case.get("owner", "openai")
        return {"object": "list", "data": [{"id": "judge-x", "object": "model", "owned_by": owner}]}


@contextmanager
def providers(cases: list[Json]) -> Iterator[list[Provider]]:
    """Serve all cases in a thread for the time of the block; yield their servers, in order."""
    all_providers = [Provider(case) for case in cases]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            provider = all_providers[int(self.path.split("/")[1])]
            if self.path.endswith("/models"):
                self.reply(200, {}, provider.models())
            else:
                self.reply(404, {}, {"detail": "Not Found"})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            provider, path = all_providers[int(self.path.split("/")[1])], self.path.split("/", 2)[2]
            if path == "embed" or path == "tokenize":
                self.reply(404, {}, {"detail": "Not Found"})
            else:
                self.reply(*provider.answer(body))

        def reply(self, status: int, headers: Json, body: Any) -> None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json", "Content-Length": len(data)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(data)

    with serving(Handler) as url:
        for number, provider in enumerate(all_providers):
            provider.url = f"{url}/{number}"
        yield all_providers
