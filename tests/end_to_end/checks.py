"""What must hold of a stack that is well. Each check returns what it found, in words, and raises Unmet where not so."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from rewardstack import Score
from rewardstack.settings import Settings
from tests.end_to_end.samples import CLOSE, Sample
from tests.end_to_end.stack import Stack, require, require_right, wait_until

JOB_SECONDS = 300.0
COPIES = 5
"""Of each rule's sample in a job."""
ENDED = ("finished", "failed", "canceled")


def health(stack: Stack) -> str:
    """Every service is well."""
    paths = {stack.reward_url: "/ready", stack.judge_url: "/health", stack.embedding_url: "/health"}
    for url, path in paths.items():
        if url:
            reply = stack.ask(url + path)
            require(reply.status == 200, f"{url}{path} answers {reply.status}: {reply.data[:200]!r}")
    return ", ".join(stack.services)


def paths(stack: Stack) -> str:
    """What is not listed at the gateway is 404, also where a service behind it has that path."""
    for url, path in ((stack.reward_url, "/"), (stack.judge_url, "/invocations"), (stack.embedding_url, "/decode")):
        if url:
            status = stack.ask(url + path).status
            require(status == 404, f"{url}{path} answers {status} where 404 is right")
    return "404 for what is not listed"


def keys(stack: Stack) -> str:
    """Where a service has a key, nobody without it is scored."""
    settings = Settings.from_env()
    guarded = [
        (stack.reward_url, "/v1/score", {"items": []}, settings.reward_server_api_key),
        (stack.judge_url, "/v1/chat/completions", {"messages": []}, settings.judge_api_key),
        (stack.embedding_url, "/embed", {"inputs": "text"}, settings.embedding_api_key),
    ]
    asked = [(url + path, body) for url, path, body, key in guarded if url and key]
    for url, body in asked:
        status = stack.ask(url, body, Authorization="Bearer not-the-key").status
        require(status == 401, f"{url} answers {status} to a wrong key")
    return f"401 without the key, at {len(asked)} services with keys"


def through_the_reward_server(stack: Stack) -> str:
    """With nothing but REWARD_SERVER_URL set, every service scores."""
    return _right(stack, direct=False)


def direct(stack: Stack) -> str:
    """With the addresses of judge and embedding server set, they score as well."""
    return _right(stack, direct=True)


def _right(stack: Stack, *, direct: bool) -> str:
    some = stack.samples()
    scores = stack.score(some, direct=direct)
    require_right(some, scores)
    values = [f"{sample.service} {one.value:g}" for sample, one in zip(some, scores, strict=True)]
    return ", ".join(dict.fromkeys(values))


def both_ways_agree(stack: Stack) -> str:
    """A sample is worth the same asked directly and through the reward server.

    A judge's written verdict is left out: in a batch of another size it may turn out another one, at temperature 0 too.
    """
    some = [sample for sample in stack.samples() if sample.service != "judge" or _is_logprob(sample)]
    ways = [stack.score(some, direct=direct) for direct in (True, False)]
    for scores in ways:
        require_right(some, scores)
    apart = max(abs((one.value or 0) - (other.value or 0)) for one, other in zip(*ways, strict=True))
    require(apart <= CLOSE, f"apart by {apart:g}")
    return f"at most {apart:.1g} apart"


def _is_logprob(sample: Sample) -> bool:
    return (sample.request.extra_info or {}).get("verdict") == "logprob"


def cache(stack: Stack) -> str:
    """What was scored once is read from the stack's cache afterwards, with the same values."""
    some = stack.samples()
    first, second = stack.score(some), stack.score(some)
    require_right(some, first)
    require(not any(one.cached for one in first), "new samples are said to come from the cache")
    _require_cached(some, second)
    require([one.value for one in first] == [one.value for one in second], "the cache holds other values")
    return f"{len(second)} of {len(second)} from the cache on the second run"


def cache_of_a_trainer(stack: Stack) -> str:
    """A trainer that scores directly and may reach the cache (REWARD_CACHE_URL) has it as well."""
    if not Settings.from_env().cache_url:
        return "left out: REWARD_CACHE_URL is not set"
    some = stack.samples()
    require_right(some, stack.score(some, direct=True))
    _require_cached(some, stack.score(some, direct=True))
    return f"{len(some)} of {len(some)} from the cache on the second run"


def _require_cached(some: Sequence[Sample], scores: Sequence[Score]) -> None:
    missed = [sample.request.data_source for sample, one in zip(some, scores, strict=True) if not one.cached]
    require(not missed, f"scored anew: {', '.join(missed)}")


def job(stack: Stack) -> str:
    """A job of every service's samples comes to its end, with each sample once, in order, and right."""
    some = [sample for sample in stack.samples() for _ in range(COPIES if sample.service == "rules" else 1)]
    started = time.monotonic()
    job_url = f"{stack.reward_url}/jobs/{_submit(stack, some)}"
    wait_until(lambda: _state(stack, job_url)["status"] in ENDED, JOB_SECONDS, f"{job_url} ends")
    state = _state(stack, job_url)
    require(state["status"] == "finished" and state["done"] == len(some), f"the job ended as {state}")
    lines = [json.loads(line) for line in stack.ask(f"{job_url}/results").data.splitlines()]
    found = [line["index"] for line in lines]
    require(found == list(range(len(some))), f"the results are numbered {found}")
    for sample, line in zip(some, lines, strict=True):
        right = line["status"] == "ok" and sample.low <= line["value"] <= sample.high
        require(right, f"{sample.request.data_source}: {line}")
    return f"{len(some)} samples in {time.monotonic() - started:.1f} s"


def _submit(stack: Stack, some: list[Sample]) -> str:
    """The id of their job; submitted twice, as by a client that lost the first answer."""
    body = {"items": [_item(sample) for sample in some]}
    key = uuid.uuid4().hex
    replies = [stack.ask(f"{stack.reward_url}/jobs", body, Idempotency_Key=key) for _ in range(2)]
    for reply in replies:
        require(reply.status == 202, f"/jobs answers {reply.status}: {reply.data[:200]!r}")
    first, again = (str(reply.json()["job_id"]) for reply in replies)
    require(first == again, "the same Idempotency-Key made two jobs")
    return first


def _item(sample: Sample) -> dict[str, Any]:
    request = sample.request
    extra = {name: value for name, value in (request.extra_info or {}).items() if name != "timeout"}
    return {
        "data_source": request.data_source,
        "solution_str": request.solution_str,
        "ground_truth": request.ground_truth,
        "extra_info": extra,
    }


def _state(stack: Stack, job_url: str) -> dict[str, Any]:
    reply = stack.ask(job_url)
    require(reply.status == 200, f"{job_url} answers {reply.status}: {reply.data[:200]!r}")
    state: dict[str, Any] = reply.json()
    return state


Check = Callable[[Stack], str]

CHECKS: tuple[Check, ...] = (
    *(health, paths, keys, through_the_reward_server, direct, both_ways_agree, cache, cache_of_a_trainer, job),
)
"""In the order in which they are run."""
